import pytest

from qmsup.core.lifecycle.pace import pause
from qmsup.units import Seconds


@pytest.mark.parametrize(
    ("so_far", "then"),
    [(0.0, 0.008), (0.005, 0.003), (0.01, 0.001), (0.1, 0.005), (0.4, 0.02), (60.0, 0.025)],
)
def test_questions_are_frequent_at_first_and_rarer_with_time(so_far: float, then: float) -> None:
    assert pause(Seconds(so_far)) == pytest.approx(then)
