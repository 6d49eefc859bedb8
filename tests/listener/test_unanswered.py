import msgspec

from qmsup.errors import Refusal
from qmsup.ids import ModelId, RequestId, RouteName
from qmsup.listener.unanswered import FIRST_REPEAT, Unanswered
from qmsup.wire.listening import Ask, Granted, Routed


class _Nobody:
    def on_place(self, place: int, *, was_ready: bool | None) -> None:
        raise AssertionError(place)

    def on_loading(self) -> None:
        raise AssertionError

    def on_granted(self, grant: Granted) -> None:
        raise AssertionError(grant)

    def on_refused(self, refusal: Refusal, count_at: object = None) -> None:
        raise AssertionError(refusal)

    def on_cut(self, refusal: Refusal, *, had_lapsed: bool = False) -> None:
        raise AssertionError(refusal)


def _unanswered() -> Unanswered:
    """Asked for at 100."""
    ask = Ask(
        request=RequestId("r"),
        model=ModelId("m"),
        streaming=True,
        hold_ms=1,
        patience_ms=2,
        timeout_ms=9,
        conversation="c",
        client="k",
        routed=Routed(route=RouteName("r")),
    )
    return Unanswered(ask, _Nobody(), 100.0, 100.0 + FIRST_REPEAT)


def test_it_is_repeated_less_and_less_often() -> None:
    one = _unanswered()

    repeated = [at for at in range(100, 160) if one.is_to_be_repeated(at)]

    assert repeated == [101, 103, 107, 115, 125, 135, 145, 155]


def test_one_that_was_heard_is_repeated_seldom_and_never_given_up() -> None:
    one = _unanswered()

    one.hear(100.5)
    one.hear(105.0)

    assert [at / 2 for at in range(200, 245) if one.is_to_be_repeated(at / 2)] == [110.5, 120.5]
    assert not one.is_given_up(1000.0, 5.0)


def test_one_that_nobody_has_heard_is_given_up_after_the_grace() -> None:
    one = _unanswered()

    assert [at for at in range(100, 108) if one.is_given_up(at, 5.0)] == [105, 106, 107]


def test_time_in_which_its_worker_was_frozen_is_not_the_schedulers() -> None:
    one = _unanswered()
    looks = [100.5, 101.5, 161.5, 162.5, 163.5, 164.5]

    assert [at for at in looks if one.is_given_up(at, 7.0)] == [164.5]
    assert one.is_to_be_repeated(161.5)


def test_a_new_scheduler_is_told_of_it_as_it_was_asked_and_how_long_it_waits() -> None:
    told = _unanswered().told(100.25)

    assert (told.request, told.model, told.timeout_ms, told.client) == ("r", "m", 9, "k")
    assert told.waited_ms == 250


def test_it_is_said_again_with_the_time_that_it_has_waited() -> None:
    one = _unanswered()
    again = one.said_again(101.5)

    assert again == msgspec.structs.replace(one.ask, waited_ms=1500)
    later = Unanswered(again, _Nobody(), 110.0, 110.0 + FIRST_REPEAT)
    assert later.said_again(110.25).waited_ms == later.told(110.25).waited_ms == 1750


def test_a_grant_is_doubted_that_was_asked_for_before_a_freeze() -> None:
    one = _unanswered()
    assert not one.doubts_grant(100.0, 100.1), "asked for since"
    assert not one.doubts_grant(102.0, 103.5), "it was asked for long ago, and so was the freeze"

    assert one.doubts_grant(102.0, 102.1)
    one.said_again(102.1)

    assert not one.doubts_grant(102.0, 102.2)


def test_a_grant_is_not_doubted_for_ever() -> None:
    one = _unanswered()

    doubted = [one.doubts_grant(at + 2.0, at + 2.1) for at in range(100, 150, 5)]

    assert doubted == [True] * 3 + [False] * 7
