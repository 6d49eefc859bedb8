"""The story of a request or a model, told from the turns of a real scheduler."""

from collections.abc import Mapping

from qmsup.core.scheduling import stories
from qmsup.core.scheduling.effects import Record
from qmsup.core.scheduling.events import (
    ConfigApplied,
    Event,
    LeaseReleased,
    ListenerJoined,
    LiveLease,
    Outcome,
    RequestAbandoned,
    RequestArrived,
    Use,
)
from qmsup.core.scheduling.lasting import UseLasted
from qmsup.core.scheduling.stories import Turn
from qmsup.ids import EventNumber, Incarnation, LeaseId, ListenerName, ModelId, RequestId, WorkerId
from qmsup.units import MiB, Seconds
from tests.support.scheduling import Desk, event_of, spec_of

W1 = WorkerId("w1")


def test_a_request_under_a_lent_lease_is_told_with_the_one_it_was_lent_for() -> None:
    recorder = Recorder()
    recorder.say("r1 asks a", "a1 ready")
    uses = (
        Use(request=RequestId("r2"), outcome=Outcome.FINISHED),
        Use(request=RequestId("r3"), outcome=Outcome.FAILED, served=False),
    )
    recorder.tell(LeaseReleased(lease=LeaseId("r1"), outcome=Outcome.FINISHED, uses=uses))

    lent = "served under the lease that its listener had been lent for r1, and ended:"
    assert recorder.of("r1")[-1] == "ended: finished"
    assert recorder.of("r2") == [f"{lent} finished"]
    assert recorder.of("r3") == [f"{lent} failed, without any answer"]
    assert recorder.of("r4") == []


def test_a_further_use_that_lasts_is_told_before_its_end() -> None:
    recorder = Recorder()
    recorder.say("r1 asks a", "a1 ready")
    recorder.tell(
        UseLasted(
            listener=W1, request=RequestId("r2"), model=ModelId("a"), incarnation=Incarnation(1)
        )
    )

    assert recorder.of("r2")[-1] == "in use for a under a lease that w1 had been lent"
    assert stories.model_of(RequestId("r2"), recorder.turns) == "a"
    recorder.say("r2 ends")
    assert recorder.of("r2")[-1] == "ended: finished"


class Recorder:
    """A desk whose every turn is recorded."""

    def __init__(self, models: str = "a b", evicts: Mapping[str, str] | None = None, **more: int):
        self.desk = Desk(spec_of(models, **more), evicts=evicts)  # type: ignore[arg-type] # slots
        self.turns: list[Turn] = []

    def say(self, *lines: str) -> None:
        for words in lines:
            if words.startswith("at "):
                self.desk.now = float(words[3:])
            else:
                self.tell(event_of(words))

    def tell(self, event: Event) -> None:
        desk = self.desk
        effects = desk.tell(event)
        desk_state = desk.scheduler.state
        self.turns.append(Turn(desk_state.event, desk_state.now, event, effects))

    def of(self, request: str) -> list[str]:
        name = RequestId(request)
        model = stories.model_of(name, self.turns)
        return [told.text for told in stories.of_request(name, model, self.turns)]

    def about(self, model: str) -> list[str]:
        return [told.text for told in stories.of_model(ModelId(model), self.turns)]


def test_a_request_that_waited_is_told_from_its_arrival_to_its_end() -> None:
    recorder = Recorder()
    recorder.say("r1 asks a", "a1 ready", "r1 accepts", "at 2", "r2 asks b streaming")
    recorder.say("r2 asks b streaming")  # a listener that has waited for long asks again
    recorder.say("at 3", "r1 ends", "a1 gone", "at 4", "b2 ready", "r2 accepts", "at 5", "r2 ends")

    assert recorder.of("r2") == [
        "arrived for b, from w1",
        "place 1 in the line",
        "r2 waits: a model that would have to stop has requests in flight (busy)",
        "loading b for r2 began; a stopped for it: its group does not run beside them (groups)",
        "left the line: its model is being loaded for it",
        "b is ready, 1.000 s after that was decided",
        "granted after 2.000 s, at 127.0.0.1:5802: b had to be loaded or waited for",
        "its listener took up the grant",
        "ended: finished",
    ]
    times = [told.now for told in stories.of_request(RequestId("r2"), None, recorder.turns)]
    assert times == sorted(times)


def test_a_ready_model_and_a_child_that_never_answered_are_told() -> None:
    recorder = Recorder()
    recorder.say("r1 asks a", "a1 ready", "r1 accepts")
    recorder.turns.clear()
    recorder.say("r2 asks a", "r2 accepts", "r2 ends unserved", "r3 asks a", "r3 declines")

    assert recorder.of("r2")[1:] == [
        "granted after 0.000 s, at 127.0.0.1:5801: a was ready when it came",
        "its listener took up the grant",
        "ended: finished, without any answer",
    ]
    assert recorder.of("r3")[-1] == "its listener declined the grant: the client had gone"


def test_whoever_leaves_is_refused_or_cut_is_told_so() -> None:
    recorder = Recorder()
    recorder.say("r1 asks a", "a1 ready", "r1 accepts", "r2 asks b", "r2 leaves", "r3 asks x")
    recorder.say("unload u a")

    assert recorder.of("r2")[-1] == "its client went away"
    assert recorder.of("r3") == [
        "arrived for x, from w1",
        "refused, model_not_found: there is no model 'x'",
    ]
    assert recorder.of("r1")[-1] == "cut, model_unloaded: model 'a' was unloaded on request"


def test_what_a_greeting_says_belongs_to_the_story() -> None:
    recorder = Recorder()
    recorder.tell(
        ListenerJoined(
            listener=W1,
            name=ListenerName("main"),
            pid=7,
            waiting=(RequestArrived(request=RequestId("r1"), listener=W1, model=ModelId("a")),),
            leases=(
                LiveLease(request=RequestId("r0"), model=ModelId("a"), incarnation=Incarnation(0)),
            ),
        )
    )

    assert recorder.of("r1")[0] == "told of again by w1, which greeted"
    assert recorder.of("r0")[:2] == [
        "in use already, said w1, which greeted",
        "r0 goes on using a",
    ]
    assert stories.model_of(RequestId("r1"), recorder.turns) == "a"


def test_the_model_is_known_from_a_grant_alone() -> None:
    recorder = Recorder()
    recorder.say("r1 asks a", "a1 ready")

    assert stories.model_of(RequestId("r1"), recorder.turns[1:]) == "a"
    assert stories.model_of(RequestId("r9"), recorder.turns) is None


def test_a_model_s_story_is_what_was_decided_about_it() -> None:
    recorder = Recorder()
    recorder.say("r1 asks a", "a1 ready", "r1 accepts", "r1 ends", "load l1 b", "a1 gone")
    recorder.say("b2 fails", "at 9", "r2 asks a", "a3 ready", "r2 accepts", "r2 ends", "a3 fails")

    assert recorder.about("a") == [
        "loading a for r1 began; nothing has to stop for it",
        "a is ready, 0.000 s after that was decided",
        "a is stopped: loading b began, and its group does not run beside them (groups)",
        "loading a for r2 began; nothing has to stop for it",
        "a is ready, 0.000 s after that was decided",
        "a died by itself: exited with 1",
    ]
    assert recorder.about("b")[-1] == "b could not be loaded: exited with 1"


def test_a_decision_that_there_is_no_sentence_for_is_told_as_it_was_recorded() -> None:
    record = Record(
        cause=EventNumber(1),
        decision="new.kind",
        model=ModelId("a"),
        request=RequestId("r1"),
        evicts=(ModelId("b"),),
        because="why",
    )
    event = RequestAbandoned(request=RequestId("r1"))
    turns = [Turn(EventNumber(1), Seconds(0.0), event, (record,))]

    for model in "ab":
        told = [sentence.text for sentence in stories.of_model(ModelId(model), turns)]
        assert told == ["new.kind, a, r1, stops b, why"]


def test_a_load_given_up_and_what_an_operator_asked_for_are_told_too() -> None:
    recorder = Recorder()
    recorder.say("r1 asks a", "r1 leaves", "load l1 b", "unload u1 a")
    recorder.tell(ConfigApplied(spec=spec_of("a", vram_budget=MiB(4))))

    assert "loading a was given up while loading" in recorder.about("a")
    assert "somebody asked to unload a (at once)" in recorder.about("a")
    assert "a new configuration is in force, and b is not in it" in recorder.about("b")
    waits = [text for text in recorder.about("b") if "waits" in text]
    assert waits == [
        "a load waits: another load under way meets what this one would load or stop (collides)"
    ]
