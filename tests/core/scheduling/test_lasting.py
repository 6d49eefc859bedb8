"""A further use of a lent lease that lasts: the scheduler knows it as it knows any other request."""

import pytest

from qmsup.core.scheduling.effects import Record
from qmsup.core.scheduling.events import ConfigApplied, LeaseReleased, Outcome
from qmsup.core.scheduling.lasting import UseLasted
from qmsup.ids import Incarnation, LeaseId, ModelId, RequestId, WorkerId
from qmsup.spec import SchedulerSpec
from qmsup.units import Seconds
from tests.support.scheduling import Desk, spec_of

A = ModelId("a")
HOLDING = SchedulerSpec(hold=Seconds(10.0))


def _lent(scheduler: SchedulerSpec = HOLDING, evicts: dict[str, str] | None = None) -> Desk:
    """Model a is in use by r1, whose lease worker w1 was lent."""
    desk = Desk(spec_of("a b", scheduler=scheduler), evicts=evicts)
    for words in ("w1 joins lends", "r0 asks a", "a1 ready", "r0 ends", "r1 asks a"):
        desk.say(words)
    return desk


def _lasts(request: str = "r2", *, of: str = "", by: str = "w1", incarnation: int = 1) -> UseLasted:
    return UseLasted(
        listener=WorkerId(by),
        request=RequestId(request),
        model=A,
        incarnation=Incarnation(incarnation),
        conversation=of,
    )


def _in_flight(desk: Desk) -> list[str]:
    return list(desk.scheduler.state.models[A].leases)


def test_it_has_a_lease_of_its_own_beside_the_one_that_was_lent() -> None:
    desk = _lent()

    desk.tell(_lasts())

    assert desk.told() == ""
    assert _in_flight(desk) == ["r1", "r2"]
    desk.say("r1 ends")
    assert _in_flight(desk) == ["r2"]
    assert desk.scheduler.state.leases[LeaseId("r2")].is_held


def test_who_has_to_wait_waits_for_it() -> None:
    desk = _lent(evicts={"b": "a"})
    desk.tell(_lasts())
    desk.say("r1 ends")

    assert desk.say("r3 asks b") == "r3 at 1, recall w1"
    assert desk.say("r2 ends") == "stop a1, loading r3"


def test_its_beginning_takes_away_the_hold_of_its_conversation_and_its_end_decides_of_the_next() -> (
    None
):
    desk = _lent()
    for words in ("r3 asks a of=x", "r3 ends tool_calls"):
        desk.say(words)
    holds = desk.scheduler.state.models[A].holds
    assert len(holds) == 1

    desk.tell(_lasts(of="x"))
    assert len(holds) == 0
    for words in ("r1 ends", "r4 asks a of=x", "r4 ends tool_calls", "r2 ends"):
        desk.say(words)

    assert holds.until == 10.0, "what has begun before the hold does not take it away when it ends"


def test_said_twice_it_is_known_once() -> None:
    desk = _lent()

    desk.tell(_lasts())
    desk.tell(_lasts())

    assert _in_flight(desk) == ["r1", "r2"]


@pytest.mark.parametrize("end", ["unload x a", "a1 fails"])
def test_under_a_child_that_is_gone_or_going_it_is_cut(end: str) -> None:
    desk = _lent()
    desk.say(end)

    desk.tell(_lasts())

    assert desk.told() == "cut r2 model_unloaded"


def test_under_a_model_that_is_gone_with_the_configuration_it_is_cut() -> None:
    desk = _lent()
    desk.tell(ConfigApplied(spec=spec_of("b")))
    for words in ("r1 ends", "a1 gone"):
        desk.say(words)

    desk.tell(_lasts())

    assert desk.told() == "cut r2 model_unloaded"


def test_of_a_worker_that_is_gone_nothing_is_believed() -> None:
    desk = _lent()
    desk.say("w1 lost")

    desk.tell(_lasts())

    assert _in_flight(desk) == []


def test_the_lease_of_another_worker_is_no_further_use() -> None:
    desk = _lent()
    for words in ("w2 joins", "r2 asks a from=w2"):
        desk.say(words)

    desk.tell(_lasts())

    assert desk.records()[-1].decision == "lease.not_its_own"
    assert desk.scheduler.state.leases[LeaseId("r2")].listener == "w2"


def test_a_request_that_waits_and_is_in_use_after_all_waits_no_longer() -> None:
    desk = _lent(evicts={"b": "a"})
    for words in ("r3 asks b", "r2 asks a"):
        desk.say(words)
    desk.now = 1000.0
    desk.say("r4 asks a")
    assert RequestId("r4") in desk.scheduler.state.waiters

    desk.tell(_lasts("r4"))

    assert RequestId("r4") not in desk.scheduler.state.waiters
    assert LeaseId("r4") in desk.scheduler.state.leases


def test_it_is_no_decision_worth_telling() -> None:
    desk = _lent()

    desk.tell(_lasts())
    desk.tell(LeaseReleased(lease=LeaseId("r1"), outcome=Outcome.FINISHED))

    assert not [effect for effect in desk.effects if isinstance(effect, Record)]
