"""Holds on one model, one for each conversation; and how long one lasts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmsup.core.scheduling.events import Outcome
from qmsup.core.scheduling.holds import Conversation, Holds, window
from qmsup.spec import HoldOn, SchedulerSpec
from qmsup.units import Seconds

X, Y = Conversation("x"), Conversation("y")
NOW = Seconds(0.0)


def test_the_latest_hold_counts() -> None:
    holds = Holds()
    assert holds.until < NOW

    holds.keep(X, Seconds(10.0), NOW)
    holds.keep(Y, Seconds(5.0), NOW)

    assert (holds.until, len(holds)) == (10.0, 2)
    holds.drop(Y)
    assert holds.until == 10.0
    holds.keep(Y, Seconds(7.0), NOW)
    holds.drop(X)
    assert holds.until == 7.0


def test_a_shorter_hold_of_the_same_conversation_takes_nothing_away() -> None:
    holds = Holds()
    holds.keep(X, Seconds(10.0), NOW)
    holds.keep(X, Seconds(5.0), NOW)

    assert (holds.until, len(holds)) == (10.0, 1)


def test_dropping_what_was_not_kept_is_no_harm() -> None:
    holds = Holds()

    holds.drop(X)
    holds.keep(Y, Seconds(1.0), NOW)
    holds.drop(X)

    assert holds.until == 1.0


def test_a_stop_ends_all() -> None:
    holds = Holds()
    holds.keep(X, Seconds(10.0), NOW)

    holds.clear()

    assert holds.until < NOW
    assert not holds


def test_conversations_without_a_key_are_told_apart_by_client() -> None:
    assert Conversation("", client="1.2.3.4") != Conversation("", client="5.6.7.8")
    assert Conversation("x") != Conversation("", client="x")


def test_many_conversations_that_never_come_back_leave_nothing_behind() -> None:
    holds = Holds()

    for n in range(10_000):
        holds.keep(Conversation(str(n)), Seconds(n + 10.0), Seconds(n))

    assert len(holds) <= 64
    assert holds.until == 10_009.0


def test_holds_that_last_are_not_cleared_out() -> None:
    holds = Holds()

    for n in range(300):
        holds.keep(Conversation(str(n)), Seconds(1000.0 - n), NOW)

    assert len(holds) == 300


@given(
    st.lists(
        st.tuples(st.sampled_from("wxyz"), st.one_of(st.none(), st.integers(1, 9))), max_size=20
    )
)
def test_it_is_the_latest_of_those_that_are_left(steps: list[tuple[str, int | None]]) -> None:
    holds, kept = Holds(), dict[str, int]()

    for key, until in steps:
        if until is None:
            holds.drop(Conversation(key))
            kept.pop(key, None)
        else:
            holds.keep(Conversation(key), Seconds(until), NOW)
            kept[key] = max(until, kept.get(key, 0))

    assert max(holds.until, 0) == max(kept.values(), default=0)


COME_BACK = {Outcome.TOOL_CALLS, Outcome.UNKNOWN}


@pytest.mark.parametrize("outcome", Outcome)
def test_a_hold_is_gated_by_the_outcome(outcome: Outcome) -> None:
    scheduler = SchedulerSpec()

    assert window(scheduler, None, outcome) == (10.0 if outcome in COME_BACK else 0.0)


@pytest.mark.parametrize("outcome", Outcome)
def test_held_always_means_after_any_outcome(outcome: Outcome) -> None:
    assert window(SchedulerSpec(hold_on=HoldOn.ALWAYS, hold=Seconds(3.0)), None, outcome) == 3.0


@pytest.mark.parametrize("outcome", Outcome)
@pytest.mark.parametrize("wish", [0.0, 0.25, 60.0])
def test_what_the_client_says_counts_whatever_the_outcome(outcome: Outcome, wish: float) -> None:
    assert window(SchedulerSpec(), Seconds(wish), outcome) == wish
