"""Leases that a worker may keep for a moment after its work: when they are lent, recalled, and what their end does."""

from dataclasses import replace

import pytest

from qmsup.core.scheduling.effects import Grant
from qmsup.core.scheduling.events import ConfigApplied, LeaseReleased, Outcome, Use
from qmsup.core.scheduling.holds import Conversation
from qmsup.ids import LeaseId, ModelId, RequestId, WorkerId
from qmsup.spec import HoldOn, SchedulerSpec, Spec
from qmsup.units import Seconds
from tests.support.scheduling import Desk, group, spec_of

A = ModelId("a")
HOLDING = SchedulerSpec(hold=Seconds(10.0))


def _desk(spec: Spec | None = None, *, evicts: dict[str, str] | None = None) -> Desk:
    """Model a is ready, and worker w1 can be lent leases."""
    desk = Desk(spec or spec_of("a b"), evicts=evicts)
    for words in ("w1 joins lends", "r0 asks a", "a1 ready", "r0 accepts", "r0 ends"):
        desk.say(words)
    return desk


def _lent(desk: Desk) -> Seconds:
    [grant] = [effect for effect in desk.effects if isinstance(effect, Grant)]
    return grant.lent


def _use(
    request: str, outcome: Outcome = Outcome.FINISHED, *, of: str = "", hold: float | None = None
) -> Use:
    return Use(
        request=RequestId(request),
        outcome=outcome,
        conversation=of,
        hold=None if hold is None else Seconds(hold),
    )


def _end(lease: str, *uses: Use, served: bool = True) -> LeaseReleased:
    return LeaseReleased(
        lease=LeaseId(lease), outcome=Outcome.FINISHED, served=served, uses=tuple(uses)
    )


def test_a_lease_is_lent_while_nobody_waits() -> None:
    desk = _desk()

    assert desk.say("r1 asks a") == "grant r1"

    assert _lent(desk) == 0.05
    desk.say("r1 asks a")
    assert _lent(desk) == 0.0, "said again, it is lent no longer than it was"


def test_a_worker_that_cannot_give_it_back_is_lent_none() -> None:
    desk = _desk()
    desk.say("w2 joins")

    desk.say("r1 asks a from=w2")

    assert _lent(desk) == 0.0
    assert WorkerId("w2") not in desk.scheduler.state.lent_to


@pytest.mark.parametrize(
    "spec",
    [
        spec_of("a b", renders="a"),
        spec_of("a b", scheduler=SchedulerSpec(hold_on=HoldOn.ALWAYS)),
        spec_of("a b", scheduler=SchedulerSpec(lend=Seconds(0.0))),
    ],
    ids=["renders", "each end holds", "switched off"],
)
def test_none_is_lent_where_the_end_of_each_request_matters(spec: Spec) -> None:
    desk = _desk(spec)

    desk.say("r1 asks a")

    assert _lent(desk) == 0.0
    assert not desk.scheduler.state.lent_to


def test_who_has_to_wait_has_what_is_lent_recalled_once() -> None:
    desk = _desk(evicts={"b": "a"})
    desk.say("r1 asks a")

    assert desk.say("r2 asks b") == "r2 at 1, recall w1"
    assert desk.say("r3 asks b") == "r3 at 2"
    assert desk.say("r1 ends") == "stop a1, loading r2, loading r3"


def test_while_somebody_waits_none_is_lent() -> None:
    desk = _desk(evicts={"b": "a"})
    desk.say("r1 asks a")
    desk.say("r2 asks b")

    desk.say("r3 asks a")

    assert _lent(desk) == 0.0


def test_at_the_limit_what_others_only_keep_comes_back() -> None:
    desk = _desk(spec_of("a b", slots=2))
    desk.say("w2 joins lends")
    desk.say("r1 asks a")
    desk.say("r2 asks a from=w2")

    assert desk.say("r3 asks a from=w2") == "r3 at 1, recall w1"
    assert desk.say("r1 ends") == "grant r3"


def test_the_last_place_is_left_to_others() -> None:
    desk = _desk(spec_of("a b", slots=2))

    desk.say("r1 asks a")
    assert _lent(desk) > 0
    desk.say("r2 asks a")
    assert _lent(desk) == 0.0


def test_a_request_that_comes_alone_is_lent_nothing() -> None:
    desk = Desk(spec_of("a b"))
    for words in ("w1 joins lends", "r0 asks a", "a1 ready"):
        desk.say(words)
    assert _lent(desk) == 0.0
    desk.say("r0 ends")

    desk.now = 0.06
    desk.say("r1 asks a")
    assert _lent(desk) == 0.0
    desk.now = 5.0
    desk.say("r2 asks a")
    assert _lent(desk) > 0, "beside another one"
    for words in ("r1 ends", "r2 ends"):
        desk.say(words)
    desk.now = 5.05
    desk.say("r3 asks a")
    assert _lent(desk) > 0, "right after another one"


def test_nothing_is_lent_of_a_child_that_has_served_nobody_yet() -> None:
    desk = Desk(spec_of("a b"))
    for words in ("w1 joins lends", "r0 asks a", "r1 asks a"):
        desk.say(words)

    desk.say("a1 ready")

    assert [e.lent for e in desk.effects if isinstance(e, Grant)] == [0.0, 0.0]


@pytest.mark.parametrize("order", ["close x", "shutdown"])
def test_a_box_that_takes_no_more_recalls_what_is_lent(order: str) -> None:
    desk = _desk()
    desk.say("r1 asks a")

    assert desk.say(order).count("recall w1") == 1


def test_what_a_lost_worker_was_lent_is_forgotten() -> None:
    desk = _desk(evicts={"b": "a"})
    desk.say("w2 joins lends")
    for words in ("r1 asks a from=w2", "w2 lost"):
        desk.say(words)
    desk.say("r2 asks a")

    assert desk.say("r3 asks b") == "r3 at 1, recall w1"


def test_the_end_of_a_lent_lease_holds_for_the_conversation_that_used_it_last() -> None:
    desk = _desk(spec_of("a b", scheduler=HOLDING))
    desk.say("r1 asks a of=x")

    desk.tell(_end("r1", _use("r2", of="y"), _use("r3", Outcome.TOOL_CALLS, of="z")))

    model = desk.scheduler.state.models[A]
    assert model.holds.until == 10.0
    model.holds.drop(Conversation("z"))
    assert model.holds.until < 0


def test_each_use_takes_away_the_hold_of_its_conversation_and_leaves_its_own() -> None:
    desk = _desk(spec_of("a b", scheduler=HOLDING))
    for words in ("r1 asks a of=x", "r2 asks a of=y", "r2 ends tool_calls"):
        desk.say(words)

    desk.tell(
        _end("r1", _use("r3", Outcome.TOOL_CALLS, of="x"), _use("r4", of="y"), _use("r5", of="v"))
    )

    holds = desk.scheduler.state.models[A].holds
    assert len(holds) == 1
    holds.drop(Conversation("x"))
    assert len(holds) == 0


def test_the_hold_that_a_client_of_a_further_use_asked_for_counts() -> None:
    desk = _desk()
    desk.say("r1 asks a")

    desk.tell(_end("r1", _use("r2", hold=2.5)))

    assert desk.scheduler.state.models[A].holds.until == 2.5


def test_a_client_without_a_conversation_is_told_by_its_worker_and_address() -> None:
    desk = _desk(spec_of("a b", scheduler=HOLDING))
    desk.say("r1 asks a of=x")
    desk.tell(
        _end("r1", replace(_use("r2", Outcome.TOOL_CALLS), client="10.0.0.7")),
    )

    desk.say("r3 asks a client=10.0.0.7")

    assert len(desk.scheduler.state.models[A].holds) == 0


def test_further_uses_make_a_model_the_hottest() -> None:
    desk = _desk(spec_of("a b"), evicts={})
    for words in ("r1 asks a", "r2 asks b", "b2 ready", "r2 ends"):
        desk.say(words)

    desk.tell(_end("r1", _use("r3")))

    models = desk.scheduler.state.models
    assert models[A].last_use > models[ModelId("b")].last_use


@pytest.mark.parametrize(("first", "further"), [(False, True), (True, False), (True, True)])
def test_any_use_that_was_served_shows_that_the_child_is_good(first: bool, further: bool) -> None:
    desk = Desk(spec_of("a b"))
    for words in ("w1 joins lends", "r1 asks a", "a1 ready"):
        desk.say(words)

    desk.tell(_end("r1", replace(_use("r2"), served=further), served=first))

    child = desk.scheduler.state.models[A].child
    assert child is not None
    assert child.has_served


def test_uses_that_were_not_served_show_nothing() -> None:
    desk = Desk(spec_of("a b"))
    for words in ("w1 joins lends", "r1 asks a", "a1 ready"):
        desk.say(words)

    desk.tell(_end("r1", replace(_use("r2"), served=False), served=False))

    child = desk.scheduler.state.models[A].child
    assert child is not None
    assert not child.has_served


def test_a_worker_that_greets_again_may_have_learnt_it() -> None:
    desk = _desk()
    desk.say("w2 joins")
    desk.say("w2 joins lends")

    desk.say("r1 asks a from=w2")

    assert _lent(desk) > 0
    assert WorkerId("w2") in desk.scheduler.state.lent_to


@pytest.mark.parametrize(("queue_max", "lent"), [(0, 0.0), (3, 0.0), (4, 0.05)])
def test_a_model_that_lets_few_wait_is_not_lent(queue_max: int, lent: float) -> None:
    """What is only kept counts against its limit of four: whom it keeps out has to find room in the line."""
    spec = spec_of("a b")
    model = replace(spec.models[A], queue_max=queue_max)
    desk = _desk(replace(spec, models={**spec.models, A: model}))

    desk.say("r1 asks a")

    assert _lent(desk) == lent


def test_a_model_that_is_to_go_once_it_is_idle_serves_nobody_new_under_what_is_lent() -> None:
    desk = _desk()
    desk.say("r1 asks a")

    assert desk.say("drain x a") == "recall w1"
    assert desk.say("r1 ends") == "stop a1"


def test_another_configuration_counts_for_what_is_lent_too() -> None:
    desk = _desk()
    desk.say("r1 asks a")

    desk.tell(ConfigApplied(spec=spec_of("a b", slots=1)))

    assert desk.told() == "recall w1"
    desk.say("r1 ends")
    desk.say("r2 asks a")
    assert _lent(desk) == 0.0, "the last place is left to others"


def test_while_something_runs_that_has_no_place_nothing_is_lent() -> None:
    desk = _desk(spec_of("a b"), evicts={})
    for words in ("r1 asks b", "b2 ready", "r2 asks a"):
        desk.say(words)
    assert _lent(desk) > 0

    desk.tell(ConfigApplied(spec=spec_of("a b", groups=(group("g", "a b"),))))
    desk.say("r3 asks a")

    assert desk.scheduler.state.law.is_doubtful
    assert _lent(desk) == 0.0


@pytest.mark.parametrize("end", ["a1 fails", "a1 gone"])
def test_nobody_is_sent_to_a_child_that_has_died(end: str) -> None:
    desk = _desk()
    desk.say("r1 asks a")

    assert desk.say(end) == "recall w1"


def test_the_end_of_a_child_that_nobody_uses_recalls_nothing() -> None:
    desk = _desk(evicts={})
    for words in ("r1 asks b", "b2 ready", "r1 ends", "r2 asks a"):
        desk.say(words)
    assert _lent(desk) > 0

    assert desk.say("b2 fails") == ""
