"""What a worker keeps of its leases, when it gives them back, and what it tells of them then."""

import pytest

from qmsup.ids import Epoch, Incarnation, ModelId, RequestId, RouteName
from qmsup.listener.leases import Leases
from qmsup.listener.outcome import Outcome
from qmsup.wire.listening import Ask, Done, Granted, Lasts, Routed, Use

MODEL = ModelId("m")
SERVED = (Outcome.FINISHED, True)


def _ask(request: str, model: str = "m", **others: object) -> Ask:
    return Ask(request=RequestId(request), model=ModelId(model), **others)  # type: ignore[arg-type]


def _granted(ask: Ask, lent_ms: int = 50) -> Granted:
    return Granted(
        request=ask.request,
        epoch=Epoch(3),
        model=ask.model,
        incarnation=Incarnation(7),
        upstream="127.0.0.1:5800",
        was_ready=False,
        waited_ms=12,
        lent_ms=lent_ms,
    )


def _add(leases: Leases[str], ask: Ask, now: float = 0.0, lent_ms: int = 50) -> None:
    leases.add(ask, _granted(ask, lent_ms), f"user of {ask.request}", now)


def _end(leases: Leases[str], request: str, now: float, outcome: str = "finished") -> Done | None:
    return leases.end(RequestId(request), outcome, served=True, now=now)


def _kept() -> Leases[str]:
    """One lease, granted for r1 at 0, kept since 0.01."""
    leases = Leases[str]()
    _add(leases, _ask("r1"))
    assert _end(leases, "r1", 0.01) is None
    return leases


def test_a_lease_that_is_not_lent_ends_with_its_work() -> None:
    leases = Leases[str]()
    _add(leases, _ask("r1"), lent_ms=0)

    assert _end(leases, "r1", 0.0) == Done(request=RequestId("r1"), outcome="finished", served=True)

    assert len(leases) == 0
    assert leases.use(_ask("r2"), "u", 0.0) is None


def test_a_lent_one_is_kept_for_the_next_request_for_its_model() -> None:
    leases = _kept()
    assert len(leases) == 1
    assert leases.use(_ask("r2", "other"), "u", 0.02) is None

    granted = leases.use(_ask("r2"), "user of r2", 0.02)

    assert granted is not None
    assert (granted.request, granted.was_ready, granted.waited_ms) == ("r2", True, 0)
    assert (granted.upstream, granted.incarnation, granted.epoch) == ("127.0.0.1:5800", 7, 3)
    assert leases.user_of(RequestId("r1")) == "user of r2"
    assert leases.ask_of(RequestId("r1")) == _ask("r2")
    assert leases.use(_ask("r3"), "u", 0.02) is None, "it is in use"


def test_it_is_given_back_with_all_that_was_done_under_it() -> None:
    leases = _kept()
    leases.use(_ask("r2", hold_ms=0, conversation="c", client="k"), "u", 0.02)
    assert _end(leases, "r2", 0.03) is None
    leases.use(_ask("r3"), "u", 0.04)

    done = _end(leases, "r3", 0.06)

    assert done == Done(
        request=RequestId("r1"),
        outcome="finished",
        served=True,
        uses=(
            Use(
                request=RequestId("r2"),
                outcome="finished",
                hold_ms=0,
                conversation="c",
                client="k",
            ),
            Use(request=RequestId("r3"), outcome="finished"),
        ),
    )
    assert len(leases) == 0


@pytest.mark.parametrize("outcome", [o.value for o in Outcome if o is not Outcome.FINISHED])
def test_an_end_that_may_matter_gives_it_back_at_once(outcome: str) -> None:
    leases = _kept()
    leases.use(_ask("r2"), "u", 0.02)

    done = _end(leases, "r2", 0.03, outcome)

    assert done is not None
    assert [use.outcome for use in done.uses] == [outcome]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_hold_that_a_client_asked_for_begins_at_once(is_first: bool) -> None:
    leases = Leases[str]()
    _add(leases, _ask("r1", hold_ms=250 if is_first else None))
    if not is_first:
        assert _end(leases, "r1", 0.01) is None
        leases.use(_ask("r2", hold_ms=250), "u", 0.01)

    assert _end(leases, "r1" if is_first else "r2", 0.02) is not None


def test_the_time_it_is_lent_for_counts_from_its_grant() -> None:
    leases = _kept()
    leases.use(_ask("r2"), "u", 0.04)

    assert _end(leases, "r2", 0.05) is not None


def test_after_that_time_it_is_not_used_but_given_back() -> None:
    leases = _kept()
    _add(leases, _ask("r2"), 0.02)
    assert _end(leases, "r2", 0.03) is None
    assert leases.due == 0.05
    assert leases.overdue(0.049) == []

    assert leases.use(_ask("r3"), "u", 0.08) is None
    assert [done.request for done in leases.overdue(0.05)] == ["r1"]
    assert leases.due == pytest.approx(0.07)
    assert [done.request for done in leases.overdue(0.08)] == ["r2"]
    assert leases.due == float("inf")
    assert len(leases) == 0


def test_a_further_use_that_lasts_has_a_lease_of_its_own() -> None:
    leases = _kept()
    leases.use(_ask("r2", hold_ms=250, conversation="c", client="k"), "user of r2", 0.02)
    assert leases.due <= 0.07
    assert leases.overdue(0.069) == []
    assert leases.due == pytest.approx(0.07)

    lasts, done = leases.overdue(0.0701)

    assert lasts == Lasts(
        request=RequestId("r2"),
        model=MODEL,
        incarnation=Incarnation(7),
        hold_ms=250,
        conversation="c",
        client="k",
    )
    assert done == Done(request=RequestId("r1"), outcome="finished", served=True)
    assert leases.due == float("inf")
    assert len(leases) == 1
    assert (leases.user_of(RequestId("r1")), leases.user_of(RequestId("r2"))) == (
        None,
        "user of r2",
    )
    [holding] = leases.holdings()
    assert (holding.request, holding.conversation, holding.hold_ms) == ("r2", "c", 250)
    assert _end(leases, "r2", 9.0) == Done(request=RequestId("r2"), outcome="finished", served=True)
    assert len(leases) == 0


def test_one_that_does_not_last_is_told_with_the_lease_it_went_by() -> None:
    leases = _kept()
    leases.use(_ask("r2"), "u", 0.02)
    done = _end(leases, "r2", 0.06)

    assert leases.overdue(0.08) == []
    assert done is not None
    assert [use.request for use in done.uses] == ["r2"]


def test_a_recall_makes_no_further_use_last_sooner() -> None:
    leases = _kept()
    leases.use(_ask("r2"), "u", 0.02)

    assert leases.recall() == []

    assert leases.due == pytest.approx(0.07)
    assert leases.overdue(0.06) == []
    assert len(leases.overdue(0.08)) == 2


def test_recalled_what_is_kept_comes_back_and_what_is_in_use_when_it_ends() -> None:
    leases = _kept()
    _add(leases, _ask("r2"), 0.01)

    assert [done.request for done in leases.recall()] == ["r1"]

    assert leases.due == float("inf")
    done = _end(leases, "r2", 0.02)
    assert done is not None
    assert done.request == "r2"


def test_a_request_of_a_route_neither_keeps_a_lease_nor_uses_a_kept_one() -> None:
    leases = _kept()
    routed = Routed(route=RouteName("way"))
    assert leases.use(_ask("r2", routed=routed), "u", 0.01) is None
    _add(leases, _ask("r3", routed=routed))

    assert _end(leases, "r3", 0.01) is not None
    assert leases.use(_ask("r4"), "u", 0.01) is not None, "the kept one is kept all the same"


def test_where_a_request_found_nobody_none_is_sent_by_what_is_kept() -> None:
    """Its child has died, it seems: the next request asks, and is served by the next one."""
    leases = _kept()
    other = _ask("r2", "other")
    leases.add(other, _granted(other), "u", 0.0)
    assert _end(leases, "r2", 0.01) is None
    _add(leases, _ask("r3"))

    leases.end(RequestId("r3"), Outcome.FAILED, served=False, now=0.02)

    assert leases.use(_ask("r4"), "u", 0.02) is None
    assert leases.due <= 0.02
    assert [done.request for done in leases.overdue(0.02)] == ["r1"]
    assert leases.use(_ask("r5", "other"), "u", 0.02) is not None


def test_a_use_that_was_not_begun_leaves_it_kept() -> None:
    leases = _kept()
    assert leases.ask_of(RequestId("r1")) is None
    assert leases.ask_of(RequestId("unknown")) is None
    leases.use(_ask("r2"), "u", 0.02)

    leases.leave(RequestId("r2"))

    assert leases.user_of(RequestId("r1")) is None
    assert leases.use(_ask("r3"), "u", 0.03) is not None
    done = _end(leases, "r3", 0.06)
    assert done is not None
    assert [use.request for use in done.uses] == ["r3"]


def test_one_that_the_scheduler_ended_is_gone_if_nobody_uses_it() -> None:
    leases = _kept()
    _add(leases, _ask("r2"))

    for name in ("r1", "r2", "unknown"):
        leases.forget(RequestId(name))

    assert leases.user_of(RequestId("r1")) is None
    assert leases.user_of(RequestId("r2")) == "user of r2"
    assert len(leases) == 1
    assert leases.use(_ask("r3"), "u", 0.01) is None


def test_ends_of_what_is_unknown_over_or_only_kept_say_nothing() -> None:
    leases = _kept()

    assert _end(leases, "r1", 0.02) is None
    assert _end(leases, "unknown", 0.02) is None
    assert RequestId("r1") in leases
    assert RequestId("unknown") not in leases


def test_a_new_scheduler_is_told_of_each_as_it_was_granted() -> None:
    leases = Leases[str]()
    _add(leases, _ask("r1", hold_ms=5, conversation="c", client="k"))

    [holding] = leases.holdings()

    assert (holding.request, holding.model, holding.incarnation) == ("r1", "m", 7)
    assert (holding.hold_ms, holding.conversation, holding.client) == (5, "c", "k")
    assert (holding.waited_ms, holding.host) == (12, "local")


def test_one_that_was_never_used_says_that_nothing_was_served() -> None:
    leases = Leases[str]()
    _add(leases, _ask("r1"))
    done = leases.end(RequestId("r1"), "failed", served=False, now=0.0)

    assert done == Done(request=RequestId("r1"), outcome="failed", served=False)
