"""A ready child that answers, works, or does neither."""

from collections.abc import Iterable

from qmsup.core.lifecycle.effects import (
    Effect,
    EndProbe,
    Kill,
    LookAtWork,
    ReportFailed,
    StartProbe,
)
from qmsup.core.lifecycle.events import (
    Event,
    Exited,
    Gone,
    ProbeAnswered,
    Readiness,
    Spawned,
    TimePassed,
    Wanted,
    WorkSeen,
)
from qmsup.core.lifecycle.liveness import ANSWER_WITHIN, ASK_EVERY, Work
from qmsup.core.lifecycle.machine import Lifecycle
from qmsup.core.lifecycle.timers import Limits
from qmsup.ids import Incarnation
from qmsup.units import Seconds

ONE = Incarnation(1)
READY = ProbeAnswered(readiness=Readiness.READY)
REFUSED = ProbeAnswered(readiness=Readiness.NOT_YET, words="connection refused")
KILLED = Exited(how="was killed by SIGKILL", last_lines="the last line")
ANSWER = ProbeAnswered(readiness=Readiness.NOT_YET, is_answer=True)


def feed(machine: Lifecycle, events: Iterable[Event], at: float = 0.0) -> list[Effect]:
    return [effect for event in events for effect in machine.handle(event, Seconds(at))]


def starting(spawned: Spawned) -> Lifecycle:
    machine = Lifecycle(Limits(start_timeout=Seconds(120.0), stop_grace=Seconds(10.0)))
    feed(machine, [Wanted(incarnation=ONE), spawned])
    return machine


def ready(spawned: Spawned = Spawned()) -> Lifecycle:  # noqa: B008 - a plain frozen value
    machine = starting(spawned)
    feed(machine, [READY])
    return machine


def failed(effects: list[Effect]) -> ReportFailed:
    (report,) = (effect for effect in effects if isinstance(effect, ReportFailed))
    return report


def test_a_ready_child_is_asked_now_and_then_and_lives_as_long_as_it_answers() -> None:
    machine = ready()

    for at in (10.0, 20.0, 3000.0):
        assert feed(machine, [TimePassed()], at=at) == [StartProbe()]
        assert machine.wake_at == at + ANSWER_WITHIN
        assert feed(machine, [ANSWER], at=at) == [EndProbe()]
        assert machine.wake_at == at + ASK_EVERY


def test_a_child_that_does_not_answer_is_looked_at_and_lives_while_it_works() -> None:
    machine = ready()

    for done in range(20):
        at = ask_in_vain(machine)
        assert feed(machine, [WorkSeen(work=Work(done=done))], at=at) == []
        assert machine.wake_at == at + ANSWER_WITHIN


def test_a_child_that_neither_answers_nor_works_is_killed_and_told_of() -> None:
    machine = ready()
    effects: list[Effect] = []
    at = 0.0

    while not effects:
        at = ask_in_vain(machine)
        effects = feed(machine, [WorkSeen(work=Work(done=7))], at=at)

    assert effects == [EndProbe(), Kill()]
    assert at == ASK_EVERY + 11 * ANSWER_WITHIN  # six questions, five pauses
    report = failed(feed(machine, [KILLED, Gone()], at=at))
    assert report.reason.startswith("the child hangs: it answered nothing for")
    assert report.last_lines == KILLED.last_lines


def test_the_last_lines_are_told_even_when_the_end_was_seen_first_as_a_whole() -> None:
    machine = starting(Spawned())
    feed(machine, [TimePassed()], at=121)

    report = failed(feed(machine, [Gone(last_lines="the very last")], at=122))

    assert report.last_lines == "the very last"


def test_a_refused_question_is_no_answer_either() -> None:
    machine = ready()
    feed(machine, [TimePassed()], at=10)

    assert feed(machine, [REFUSED], at=10) == [EndProbe(), LookAtWork()]


def test_a_child_that_cannot_be_asked_is_looked_at() -> None:
    machine = ready(Spawned(can_be_asked=False))

    assert feed(machine, [TimePassed()], at=10) == [LookAtWork()]
    assert feed(machine, [WorkSeen(work=Work(done=1))], at=10) == []
    stopped = WorkSeen(work=Work(done=1, is_stopped=True))
    for at in (20, 23):
        assert feed(machine, [TimePassed(), stopped], at=at) == [LookAtWork()]
    assert feed(machine, [TimePassed(), stopped], at=26)[1:] == [EndProbe(), Kill()]


def test_a_child_whose_work_is_done_elsewhere_is_let_be() -> None:
    machine = ready(Spawned(can_be_watched=False))

    assert machine.wake_at is None


def ask_in_vain(machine: Lifecycle) -> float:
    """Wait for the next question and then for its answer, which does not come; when that was clear."""
    assert machine.wake_at is not None
    assert feed(machine, [TimePassed()], at=machine.wake_at) == [StartProbe()]
    at = machine.wake_at
    assert feed(machine, [TimePassed()], at=at) == [EndProbe(), LookAtWork()]
    return at
