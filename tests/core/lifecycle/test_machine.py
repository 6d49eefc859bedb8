from collections.abc import Iterable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from qmsup.core.lifecycle.effects import (
    Effect,
    EndProbe,
    GiveUp,
    Kill,
    LookAtWork,
    ReportFailed,
    ReportReady,
    ReportStarting,
    ReportStopped,
    SeeRest,
    Spawn,
    StartProbe,
    Terminate,
)
from qmsup.core.lifecycle.events import (
    Event,
    Exited,
    Gone,
    ProbeAnswered,
    Readiness,
    Spawned,
    SpawnFailed,
    TimePassed,
    Unwanted,
    Wanted,
    WorkSeen,
)
from qmsup.core.lifecycle.liveness import ASK_EVERY, Work
from qmsup.core.lifecycle.machine import KILL_PATIENCE, PROBE_TIMEOUT, Lifecycle
from qmsup.core.lifecycle.phase import Phase
from qmsup.core.lifecycle.timers import Limits
from qmsup.ids import Incarnation
from qmsup.units import Seconds

ONE, TWO, THREE = Incarnation(1), Incarnation(2), Incarnation(3)
READY = ProbeAnswered(readiness=Readiness.READY)
LOADING = ProbeAnswered(readiness=Readiness.NOT_YET, words="GET /health answered 503")
FOREIGN = ProbeAnswered(readiness=Readiness.FOREIGN, words="a stranger answers")
DIED = Exited(how="exited with code 1", hint="no such file", last_lines="error: no such file")
PORT_TAKEN = Exited(how="exited with code 1", hint="its port was taken", port_taken=True)
KILLED = Exited(how="was killed by SIGKILL", last_lines="the last line")
ANSWER = ProbeAnswered(readiness=Readiness.NOT_YET, is_answer=True)
STOPPED_ONE = ReportStopped(incarnation=ONE)


def life(
    *, start_timeout: float = 120, grace: float = 10, again: float | None = None, tries: int = 3
) -> Lifecycle:
    return Lifecycle(
        Limits(
            start_timeout=Seconds(start_timeout),
            stop_grace=Seconds(grace),
            term_again=None if again is None else Seconds(again),
            port_tries=tries,
        )
    )


def feed(machine: Lifecycle, events: Iterable[Event], at: float = 0.0) -> list[Effect]:
    return [effect for event in events for effect in machine.handle(event, Seconds(at))]


def starting(machine: Lifecycle | None = None) -> Lifecycle:
    machine = machine or life()
    feed(machine, [Wanted(incarnation=ONE), Spawned()])
    return machine


def ready(machine: Lifecycle | None = None) -> Lifecycle:
    machine = starting(machine)
    feed(machine, [READY])
    return machine


def stopping(machine: Lifecycle | None = None) -> Lifecycle:
    machine = ready(machine)
    feed(machine, [Unwanted(incarnation=ONE)])
    return machine


def failed(effects: list[Effect]) -> ReportFailed:
    (report,) = (effect for effect in effects if isinstance(effect, ReportFailed))
    return report


def test_wanted_starts_and_says_so() -> None:
    machine = life()

    assert feed(machine, [Wanted(incarnation=ONE)]) == [Spawn(incarnation=ONE)]
    assert machine.phase is Phase.STARTING
    assert feed(machine, [Spawned()]) == [ReportStarting(incarnation=ONE)]
    assert machine.incarnation == ONE


def test_a_child_that_answers_is_ready() -> None:
    machine = starting()

    assert feed(machine, [TimePassed()], at=0.01) == [StartProbe()]
    assert feed(machine, [READY], at=0.02) == [EndProbe(), ReportReady(incarnation=ONE)]
    assert machine.phase is Phase.READY
    assert machine.wake_at == pytest.approx(0.02 + ASK_EVERY)


def test_a_start_is_first_asked_about_when_the_last_one_was_nearly_ready() -> None:
    machine = starting()
    feed(machine, [READY], at=0.02)
    feed(machine, [Unwanted(incarnation=ONE), Gone()], at=1.0)

    feed(machine, [Wanted(incarnation=TWO), Spawned()], at=2.0)

    assert machine.wake_at == pytest.approx(2.018)


def test_why_a_child_ended_is_of_interest_unless_it_was_asked_to() -> None:
    stranger = starting()
    feed(stranger, [FOREIGN])

    assert stopping().wants_no_reason
    assert not ready().wants_no_reason
    assert not stranger.wants_no_reason


def test_wanted_while_starting_waits() -> None:
    assert feed(starting(), [Wanted(incarnation=ONE)]) == []


def test_wanted_while_ready_is_reported_again() -> None:
    assert feed(ready(), [Wanted(incarnation=ONE)]) == [ReportReady(incarnation=ONE)]


def test_an_older_incarnation_is_not_brought_back() -> None:
    machine = life()
    feed(machine, [Wanted(incarnation=TWO), Spawned()])

    assert feed(machine, [Wanted(incarnation=ONE)]) == [STOPPED_ONE]


@pytest.mark.parametrize("machine", [starting(), ready()])
def test_a_newer_incarnation_replaces_the_child(machine: Lifecycle) -> None:
    assert feed(machine, [Wanted(incarnation=TWO)]) == [EndProbe(), Terminate()]
    assert feed(machine, [Exited(how="exited with code 0"), Gone()])[-2:] == [
        STOPPED_ONE,
        Spawn(incarnation=TWO),
    ]


def test_wanted_while_stopping_is_served_by_the_next_start() -> None:
    machine = stopping()

    assert feed(machine, [Wanted(incarnation=TWO)]) == []
    assert feed(machine, [Gone()]) == [STOPPED_ONE, Spawn(incarnation=TWO)]


def test_only_the_last_of_those_wanted_while_stopping_is_started() -> None:
    machine = stopping()
    feed(machine, [Wanted(incarnation=TWO), Wanted(incarnation=TWO)])

    assert feed(machine, [Wanted(incarnation=THREE)]) == [ReportStopped(incarnation=TWO)]
    assert feed(machine, [Gone()]) == [STOPPED_ONE, Spawn(incarnation=THREE)]


def test_one_that_waits_for_its_start_can_be_unwanted_again() -> None:
    machine = stopping()
    feed(machine, [Wanted(incarnation=TWO)])

    assert feed(machine, [Unwanted(incarnation=TWO)]) == [ReportStopped(incarnation=TWO)]
    assert feed(machine, [Gone()]) == [STOPPED_ONE]
    assert machine.phase is Phase.STOPPED


def test_the_same_number_wanted_and_unwanted_while_it_stops_is_reported_once() -> None:
    machine = stopping()

    assert feed(machine, [Wanted(incarnation=ONE), Unwanted(incarnation=ONE)]) == []
    assert feed(machine, [Gone()]) == [STOPPED_ONE]


def test_unwanted_without_a_child_is_answered() -> None:
    assert feed(life(), [Unwanted(incarnation=ONE)]) == [STOPPED_ONE]


def test_unwanted_of_another_incarnation_leaves_the_child_alone() -> None:
    machine = ready()

    assert feed(machine, [Unwanted(incarnation=TWO)]) == [ReportStopped(incarnation=TWO)]
    assert machine.phase is Phase.READY


@pytest.mark.parametrize("machine", [starting(), ready()])
def test_unwanted_ends_the_child(machine: Lifecycle) -> None:
    assert feed(machine, [Unwanted(incarnation=ONE)]) == [EndProbe(), Terminate()]
    assert feed(machine, [Unwanted(incarnation=ONE)]) == []
    assert feed(machine, [Exited(how="was killed by SIGTERM")]) == [EndProbe(), SeeRest()]
    assert feed(machine, [Gone()]) == [STOPPED_ONE]


def test_what_a_leader_leaves_behind_has_its_grace_and_is_killed_after_it() -> None:
    machine = stopping()

    feed(machine, [Exited(how="exited with code 0")], at=4)
    assert feed(machine, [TimePassed()], at=4.02) == [SeeRest()]
    assert feed(machine, [TimePassed()], at=9.9) == [SeeRest()]
    assert feed(machine, [TimePassed()], at=10) == [EndProbe(), Kill()]
    assert feed(machine, [TimePassed()], at=10.02) == [Kill()]
    assert feed(machine, [Gone()], at=10.03) == [STOPPED_ONE]


def test_the_longer_something_is_left_the_less_often_it_is_looked_for() -> None:
    machine = stopping()
    feed(machine, [Exited(how="exited with code 0")], at=1)
    pauses = []

    while machine.wake_at is not None and machine.wake_at < 10:
        at = machine.wake_at
        feed(machine, [TimePassed()], at=at)
        pauses.append(machine.wake_at - at)

    assert pauses[0] == pytest.approx(0.03)
    assert max(pauses) == pytest.approx(0.2)
    assert len(pauses) < 60


def test_what_is_left_of_one_that_ended_by_itself_is_killed_at_once() -> None:
    machine = ready()

    assert feed(machine, [DIED]) == [EndProbe(), Kill()]
    assert feed(machine, [TimePassed()], at=0.02) == [Kill()]


def test_a_child_deaf_to_term_is_killed_after_its_grace() -> None:
    machine = stopping()

    assert machine.wake_at == Seconds(10.0)
    assert feed(machine, [TimePassed()], at=9.9) == []
    assert feed(machine, [TimePassed()], at=10) == [EndProbe(), Kill()]
    assert feed(machine, [TimePassed()], at=11) == []


def test_a_term_that_may_be_lost_is_repeated_once() -> None:
    machine = stopping(life(again=2))

    assert machine.wake_at == Seconds(2.0)
    assert feed(machine, [TimePassed()], at=2) == [Terminate()]
    assert machine.wake_at == Seconds(10.0)


def test_no_term_is_repeated_that_a_kill_would_overtake() -> None:
    assert stopping(life(again=2, grace=1)).wake_at == Seconds(1.0)


def test_what_is_left_after_the_leader_is_killed_until_it_is_gone() -> None:
    machine = ready()

    assert feed(machine, [DIED], at=1) == [EndProbe(), Kill()]
    assert machine.wake_at == pytest.approx(1.02)
    assert feed(machine, [TimePassed()], at=1.02) == [Kill()]
    assert machine.wake_at == pytest.approx(1.05)


def test_a_child_that_kill_does_not_end_is_given_up() -> None:
    machine = stopping()
    feed(machine, [Wanted(incarnation=TWO)])
    feed(machine, [TimePassed()], at=10)

    effects = feed(machine, [TimePassed()], at=10 + KILL_PATIENCE)

    assert effects[0] == GiveUp()
    assert "hangs in the kernel" in failed(effects).reason
    assert effects[-1] == Spawn(incarnation=TWO)


@pytest.mark.parametrize(("machine", "word"), [(starting(), "loading"), (ready(), "ready")])
def test_a_child_that_ends_by_itself_failed(machine: Lifecycle, word: str) -> None:
    assert feed(machine, [DIED, Gone()]) == [
        EndProbe(),
        Kill(),
        ReportFailed(
            incarnation=ONE,
            reason=f"the child exited with code 1 while {word}: no such file",
            last_lines="error: no such file",
        ),
    ]
    assert machine.phase is Phase.STOPPED


def test_an_end_that_nobody_can_explain_is_told_all_the_same() -> None:
    effects = feed(ready(), [Exited(how="was killed by SIGHUP"), Gone()])

    assert failed(effects).reason == "the child was killed by SIGHUP while ready"


def test_unwanted_after_an_end_by_itself_is_answered_by_that_end() -> None:
    machine = ready()

    assert feed(machine, [DIED, Unwanted(incarnation=ONE)]) == [EndProbe(), Kill()]
    assert failed(feed(machine, [Gone()])).incarnation == ONE


def test_a_failed_child_can_be_wanted_again() -> None:
    machine = ready()
    feed(machine, [DIED, Gone()])

    assert feed(machine, [Wanted(incarnation=TWO)]) == [Spawn(incarnation=TWO)]


def test_no_process_no_life() -> None:
    machine = life()

    effects = feed(machine, [Wanted(incarnation=ONE), SpawnFailed(reason="no program x")])

    assert effects[-1] == ReportFailed(incarnation=ONE, reason="no program x")
    assert machine.phase is Phase.STOPPED


def test_a_probe_without_an_answer_is_given_up_and_another_one_sent() -> None:
    machine = starting()
    feed(machine, [TimePassed()], at=1)

    assert machine.wake_at == 1 + PROBE_TIMEOUT
    assert feed(machine, [TimePassed()], at=2) == [EndProbe()]
    assert feed(machine, [TimePassed()], at=2.3) == [StartProbe()]


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([], "no answer yet"),
        ([LOADING], "GET /health answered 503"),
        ([LOADING, ProbeAnswered(readiness=Readiness.NOT_YET)], "GET /health answered 503"),
    ],
)
def test_a_start_that_takes_too_long_fails_with_what_was_last_seen(
    answers: list[Event], words: str
) -> None:
    machine = starting(life(start_timeout=60))
    feed(machine, answers, at=1)

    assert feed(machine, [TimePassed()], at=60) == [EndProbe(), Terminate()]
    report = failed(feed(machine, [DIED, Gone()], at=61))

    assert report.reason.startswith(f"the child was not ready within 60 s (last seen: {words})")
    assert report.last_lines == DIED.last_lines


def test_what_a_probe_or_a_look_says_later_changes_nothing() -> None:
    assert feed(stopping(), [LOADING, READY, FOREIGN, WorkSeen(work=Work(done=1))]) == []


def test_a_start_that_lost_its_port_is_tried_on_another() -> None:
    machine = starting(life(tries=2))

    assert feed(machine, [PORT_TAKEN, Gone()])[-1] == Spawn(incarnation=ONE)
    assert feed(machine, [Spawned()]) == [ReportStarting(incarnation=ONE)]
    assert "its port was taken" in failed(feed(machine, [PORT_TAKEN, Gone()])).reason


def test_a_port_that_a_stranger_answers_on_is_left_to_him() -> None:
    machine = starting(life(tries=2))

    assert feed(machine, [FOREIGN]) == [EndProbe(), Terminate()]
    assert feed(machine, [Exited(how="exited"), Gone()])[-1] == Spawn(incarnation=ONE)
    feed(machine, [Spawned(), FOREIGN])
    report = failed(feed(machine, [Exited(how="exited", last_lines="bye"), Gone()]))
    assert (report.reason, report.last_lines) == ("a stranger answers", "bye")


def test_a_lost_port_is_not_replaced_when_the_time_is_over_or_nobody_wants_it() -> None:
    late = starting()
    assert isinstance(feed(late, [PORT_TAKEN, Gone()], at=120)[-1], ReportFailed)

    unwanted = starting()
    feed(unwanted, [PORT_TAKEN, Unwanted(incarnation=ONE)])
    assert isinstance(feed(unwanted, [Gone()])[-1], ReportFailed)


def test_a_newer_incarnation_takes_the_place_of_a_further_try() -> None:
    machine = starting()
    feed(machine, [FOREIGN, Wanted(incarnation=TWO)])

    effects = feed(machine, [Exited(how="exited"), Gone()])

    assert failed(effects).incarnation == ONE
    assert effects[-1] == Spawn(incarnation=TWO)


def test_a_further_try_serves_who_wants_the_same_incarnation_again() -> None:
    machine = starting()

    assert feed(machine, [PORT_TAKEN, Wanted(incarnation=ONE)]) == [EndProbe(), Kill()]
    assert feed(machine, [Gone(), Spawned(), READY])[-1] == ReportReady(incarnation=ONE)
    feed(machine, [Unwanted(incarnation=ONE)])
    assert feed(machine, [Gone()]) == [STOPPED_ONE]


def test_a_child_killed_for_a_stranger_on_its_port_can_be_given_up_too() -> None:
    machine = starting()
    feed(machine, [FOREIGN])
    feed(machine, [TimePassed()], at=10)

    assert isinstance(feed(machine, [TimePassed()], at=40)[-1], ReportFailed)


class EveryLifeEnds(RuleBasedStateMachine):
    """Whatever happens in whatever order, every Wanted and every Unwanted gets its report."""

    def __init__(self) -> None:
        super().__init__()
        self.machine = life(start_timeout=5, grace=2, again=1, tries=2)
        self.now = 0.0
        self.newest = 0
        self.open: set[int] = set()  # wanted or unwanted, and without an end
        self.is_running = False
        self.leader_lives = False
        self.done = 0

    def feed(self, event: Event) -> None:
        for effect in self.machine.handle(event, Seconds(self.now)):
            match effect:
                case Spawn():
                    assert not self.is_running, "two children of one model"
                    self.is_running = self.leader_lives = True
                    self.feed(Spawned())
                case GiveUp():
                    self.is_running = False
                case Terminate() | Kill() | SeeRest():
                    assert self.is_running
                case ReportStopped(incarnation=ended) | ReportFailed(incarnation=ended):
                    self.open.discard(ended)
                case LookAtWork():
                    self.feed(WorkSeen(work=Work(done=self.done)))
                case StartProbe() | EndProbe():
                    pass
                case ReportStarting(incarnation=alive) | ReportReady(incarnation=alive):
                    assert alive == self.machine.incarnation

    @rule()
    def want(self) -> None:
        self.newest += 1
        self.open.add(self.newest)
        self.feed(Wanted(incarnation=Incarnation(self.newest)))

    @precondition(lambda self: self.newest > 0)
    @rule(back=st.integers(0, 2))
    def unwant(self, back: int) -> None:
        self.feed(Unwanted(incarnation=Incarnation(self.newest - back)))

    @rule(readiness=st.sampled_from(Readiness), is_answer=st.booleans())
    def probe(self, readiness: Readiness, is_answer: bool) -> None:
        self.feed(ProbeAnswered(readiness=readiness, is_answer=is_answer))

    @rule()
    def work(self) -> None:
        self.done += 1

    @precondition(lambda self: self.leader_lives and self.is_running)
    @rule(port_taken=st.booleans())
    def exit(self, port_taken: bool) -> None:
        self.leader_lives = False
        self.feed(Exited(how="exited", port_taken=port_taken))

    @precondition(lambda self: self.is_running and not self.leader_lives)
    @rule()
    def gone(self) -> None:
        self.is_running = False
        self.feed(Gone())

    @rule(seconds=st.floats(0.001, 40))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.feed(TimePassed())

    @invariant()
    def what_is_open_is_alive_or_next(self) -> None:
        alive = {self.machine.incarnation, self.machine._next}
        assert self.open <= alive

    @invariant()
    def what_does_not_stand_still_has_a_time(self) -> None:
        stands_still = self.machine.phase is Phase.STOPPED
        assert (self.machine.wake_at is None) == stands_still


TestEveryLifeEnds = EveryLifeEnds.TestCase
