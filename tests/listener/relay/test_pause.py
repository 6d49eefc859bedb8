from qmsup.listener.relay.loop import Loop
from qmsup.listener.relay.pause import Pause
from qmsup.units import Seconds


def test_only_the_pause_that_was_begun_last_comes_to_its_end_and_once() -> None:
    loop = Loop()
    pause = Pause(loop)
    ends: list[bool] = []
    pause.begin(Seconds(0.0), lambda: ends.append(pause.is_over()))
    pause.begin(Seconds(0.01), lambda: ends.append(pause.is_over()))

    while len(ends) < 2:
        loop.turn(1.0)

    assert ends == [False, True]
    assert not pause.is_over()
    loop.close()


def test_what_was_dropped_is_never_over() -> None:
    loop = Loop()
    pause = Pause(loop)
    ends: list[bool] = []
    pause.begin(Seconds(0.0), lambda: ends.append(pause.is_over()))
    pause.drop()

    loop.turn(0.0)

    assert ends == [False]
    loop.close()
