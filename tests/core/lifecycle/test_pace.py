import pytest

from qmsup.core.lifecycle.pace import Pace
from qmsup.units import Seconds


@pytest.mark.parametrize(
    ("so_far", "then"),
    [
        (0.0, 0.008),
        (0.005, 0.003),
        (0.01, 0.001),
        (0.1, 0.005),
        (0.4, 0.02),
        (1.0, 0.025),
        (60.0, 0.025),
    ],
)
def test_looks_are_frequent_at_first_and_rarer_with_time(so_far: float, then: float) -> None:
    pace = Pace(Seconds(7.0))

    assert pace.next_look(Seconds(7.0 + so_far)) == pytest.approx(7.0 + so_far + then)


@pytest.mark.parametrize(
    ("is_at_work", "so_far", "patience"),
    [
        (False, 0.05, 0.003),
        (False, 60.0, 0.003),
        (True, 0.05, 0.01),
        (True, 2.0, 0.1),
        (True, 60.0, 0.25),
    ],
)
def test_who_rests_is_asked_and_who_works_is_let_work(
    is_at_work: bool, so_far: float, patience: float
) -> None:
    pace = Pace(Seconds(0.0))
    assert pace.asks(Seconds(so_far), is_at_work=is_at_work)

    assert not pace.asks(Seconds(so_far + patience * 0.9), is_at_work=is_at_work)
    assert pace.asks(Seconds(so_far + patience * 1.1), is_at_work=is_at_work)


def test_a_start_is_not_asked_at_once() -> None:
    assert not Pace(Seconds(1.0)).asks(Seconds(1.002), is_at_work=False)
