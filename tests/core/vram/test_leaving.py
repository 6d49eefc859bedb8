"""Memory of the dead on its way back: what is theirs of what nobody alive uses."""

import pytest

from qmsup.core.vram.leaving import Leaving
from qmsup.ids import Incarnation
from qmsup.units import MiB, Seconds

A, B = Incarnation(1), Incarnation(2)


def news(leaving: Leaving) -> dict[int, int]:
    return dict(leaving.take_news())


def test_what_a_dead_child_still_has_is_nobody_elses() -> None:
    leaving = Leaving()
    leaving.ended(A, MiB(1000), Seconds(3.0))

    assert leaving.foreign_of(MiB(1500), MiB(500)) == 500
    assert leaving.left_of(A) == 1000
    assert news(leaving) == {}

    assert leaving.foreign_of(MiB(800), MiB(500)) == 500
    assert leaving.left_of(A) == 300
    assert news(leaving) == {A: 700}
    assert news(leaving) == {}

    assert leaving.foreign_of(MiB(500), MiB(500)) == 500
    assert news(leaving) == {A: 1000}
    assert not leaving


def test_who_was_never_seen_owes_what_it_may_have_taken_until_that_is_not_there() -> None:
    leaving = Leaving()
    leaving.ended(A, MiB(0), Seconds(3.0), most=MiB(4000))
    owed = [leaving.is_owed]

    for others in (3500, 500):
        assert leaving.foreign_of(MiB(others), MiB(500)) == 500
        owed.append(leaving.is_owed)

    assert owed == [True, True, False]
    assert news(leaving) == {}, "nobody was told that it held any"
    assert not leaving


def test_others_who_take_it_meanwhile_are_seen_beyond_what_it_held() -> None:
    leaving = Leaving()
    leaving.ended(A, MiB(1000), Seconds(3.0))

    assert leaving.foreign_of(MiB(2700), MiB(500)) == 1700


def test_others_who_give_some_back_are_believed() -> None:
    leaving = Leaving()
    leaving.ended(A, MiB(1000), Seconds(3.0))

    assert leaving.foreign_of(MiB(300), MiB(500)) == 300
    assert news(leaving) == {A: 1000}


def test_what_has_come_back_is_not_owed_again() -> None:
    leaving = Leaving()
    leaving.ended(A, MiB(1000), Seconds(3.0))
    leaving.foreign_of(MiB(700), MiB(500))

    # 800 more than before: of the dead one's 1000 only 200 were still out.
    assert leaving.foreign_of(MiB(1500), MiB(500)) == 1300


def test_with_nothing_known_of_others_they_are_not_underrated() -> None:
    leaving = Leaving()
    leaving.ended(A, MiB(1000), Seconds(3.0))

    assert leaving.foreign_of(MiB(1500), None) == 1500


def test_who_went_first_comes_back_first() -> None:
    leaving = Leaving()
    leaving.ended(A, MiB(400), Seconds(3.0))
    leaving.ended(B, MiB(600), Seconds(4.0))

    leaving.foreign_of(MiB(700), MiB(0))
    assert news(leaving) == {A: 300}

    leaving.foreign_of(MiB(500), MiB(0))
    assert news(leaving) == {A: 400, B: 100}


def test_after_so_long_it_is_somebody_elses() -> None:
    leaving = Leaving()
    leaving.ended(A, MiB(1000), Seconds(3.0))
    leaving.forget_overdue(Seconds(2.9))
    assert leaving

    leaving.forget_overdue(Seconds(3.0))

    assert not leaving
    assert leaving.foreign_of(MiB(1500), MiB(500)) == 1500


def test_of_one_that_vanished_before_its_end_the_rest_is_told() -> None:
    leaving = Leaving()
    leaving.vanished(A, MiB(1000))
    leaving.vanished(A, MiB(1000))
    leaving.foreign_of(MiB(900), MiB(500))
    leaving.forget_overdue(Seconds(99.0))

    assert leaving.left_of(A) == 400
    assert news(leaving) == {}  # a load may still count on what it holds; its end is to come

    leaving.ended(A, MiB(1000), Seconds(3.0))
    leaving.ended(A, MiB(1000), Seconds(9.0))
    leaving.foreign_of(MiB(600), MiB(500))
    assert news(leaving) == {A: 300}
    leaving.forget_overdue(Seconds(3.0))
    assert not leaving


@pytest.mark.parametrize("vanishes_first", [False, True])
def test_one_that_was_still_taking_memory_may_have_taken_more(vanishes_first: bool) -> None:
    leaving = Leaving()
    if vanishes_first:
        leaving.vanished(A, MiB(400), MiB(1000))
    else:
        leaving.ended(A, MiB(400), Seconds(3.0), MiB(1000))

    assert leaving.foreign_of(MiB(1200), MiB(500)) == 500
    assert leaving.left_of(A) == 700
    assert news(leaving) == {}
    leaving.ended(A, MiB(400), Seconds(3.0))
    assert leaving.foreign_of(MiB(600), MiB(500)) == 500
    assert news(leaving) == {A: 600 if vanishes_first else 300}


def test_one_that_is_there_after_all_holds_its_own() -> None:
    leaving = Leaving()
    leaving.vanished(A, MiB(1000))
    leaving.seen(A)
    assert not leaving

    leaving.ended(A, MiB(1000), Seconds(3.0))
    leaving.seen(A)
    leaving.seen(B)
    assert leaving


def test_one_that_held_nothing_leaves_nothing() -> None:
    leaving = Leaving()
    leaving.ended(A, MiB(0), Seconds(3.0))

    assert not leaving
    assert leaving.left_of(A) == 0
