from qmsup.core.lifecycle.backoff import BackOff
from qmsup.ids import Incarnation
from qmsup.units import Seconds


def test_without_a_failure_nothing_is_left() -> None:
    assert BackOff().left(Seconds(0.0)) == 0.0


def test_each_failure_doubles_the_delay_up_to_a_minute() -> None:
    back_off, delays = BackOff(), []
    for number in range(1, 15):
        back_off = back_off.after_failure(Incarnation(number), "died", Seconds(100.0))
        delays.append(back_off.left(Seconds(100.0)))

    assert delays == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, *[60.0] * 8]
    assert back_off.error == "died"


def test_time_runs_it_out() -> None:
    back_off = BackOff().after_failure(Incarnation(1), "died", Seconds(10.0))

    assert back_off.left(Seconds(10.75)) == 0.25
    assert back_off.left(Seconds(11.0)) == 0.0
    assert back_off.left(Seconds(99.0)) == 0.0


def test_a_served_request_resets_it() -> None:
    back_off = BackOff().after_failure(Incarnation(2), "died", Seconds(0.0))

    assert back_off.after_service(Incarnation(2)) == BackOff()
    assert back_off.after_service(Incarnation(3)) == BackOff()


def test_a_start_older_than_the_failure_proves_nothing() -> None:
    back_off = BackOff().after_failure(Incarnation(2), "died", Seconds(0.0))

    assert back_off.after_service(Incarnation(1)) == back_off
