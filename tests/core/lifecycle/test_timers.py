from qmsup.core.lifecycle.timers import Timers, has_come
from qmsup.units import Seconds


def test_the_first_of_all_times_counts() -> None:
    assert Timers(kill_at=Seconds(3), probe_at=Seconds(2)).earliest() == Seconds(2)
    assert Timers().earliest() is None


def test_a_time_comes_once_and_for_all_and_none_never() -> None:
    assert not has_come(Seconds(2), Seconds(1.9))
    assert has_come(Seconds(2), Seconds(2))
    assert not has_come(None, Seconds(99))
