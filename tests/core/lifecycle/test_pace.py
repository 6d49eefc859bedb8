import pytest

from qmsup.core.lifecycle.pace import pause, remembered
from qmsup.units import Seconds


@pytest.mark.parametrize(
    ("so_far", "then"),
    [(0.0, 0.008), (0.005, 0.003), (0.01, 0.001), (0.1, 0.005), (0.4, 0.02), (60.0, 0.025)],
)
def test_questions_are_frequent_at_first_and_rarer_with_time(so_far: float, then: float) -> None:
    assert pause(Seconds(so_far)) == pytest.approx(then)


@pytest.mark.parametrize(
    ("so_far", "then"),
    [(0.0, 0.018), (0.01, 0.008), (0.018, 0.001), (0.1, 0.005)],
)
def test_before_the_quickest_of_the_last_starts_was_ready_there_are_fewer(
    so_far: float, then: float
) -> None:
    took = (Seconds(0.03), Seconds(0.02), Seconds(0.5))

    assert pause(Seconds(so_far), took) == pytest.approx(then)


def test_a_start_may_be_quicker_than_those_before_it_and_is_seen_all_the_same() -> None:
    assert pause(Seconds(0.0), (Seconds(60.0),)) == pytest.approx(0.025)
    assert pause(Seconds(1.0), (Seconds(60.0),)) == pytest.approx(0.025)


def test_old_starts_are_forgotten() -> None:
    took: tuple[Seconds, ...] = ()
    for latest in range(6):
        took = remembered(took, Seconds(float(latest)))

    assert took == (2.0, 3.0, 4.0, 5.0)
