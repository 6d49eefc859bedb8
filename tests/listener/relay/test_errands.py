"""What is done beside a loop, and comes back to it."""

import threading
import time
from collections.abc import Iterator

import pytest

from qmsup.listener.relay.errands import Errands
from qmsup.listener.relay.loop import Loop

_WITHIN = 20.0


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


def test_the_loop_turns_while_it_is_done_and_takes_the_result_in_its_own_thread(loop: Loop) -> None:
    errands, go_on = Errands(loop), threading.Event()
    taken: list[tuple[int, bool, bool]] = []
    own = threading.current_thread()

    def do() -> tuple[int, bool]:
        go_on.wait(_WITHIN)
        return 7, threading.current_thread() is own

    errands.run("x", do, lambda got: taken.append((*got, threading.current_thread() is own)))
    loop.turn(0.0)
    assert taken == []
    go_on.set()
    deadline = time.monotonic() + _WITHIN
    while not taken:
        assert time.monotonic() < deadline
        loop.turn(0.1)

    assert taken == [(7, False, True)]
    errands.close()


def test_the_end_waits_for_nothing_that_is_under_way(loop: Loop) -> None:
    errands, go_on = Errands(loop), threading.Event()
    errands.run("x", lambda: go_on.wait(_WITHIN), lambda got: pytest.fail(f"told of {got}"))
    (thread,) = (thread for thread in threading.enumerate() if thread.name == "x")

    errands.close()
    go_on.set()
    thread.join(_WITHIN)
    loop.turn(0.0)

    assert not thread.is_alive()


def test_so_many_at_once_are_enough(loop: Loop) -> None:
    errands, go_on = Errands(loop), threading.Event()
    taken: list[bool] = []
    for _ in range(15):
        errands.run("x", lambda: go_on.wait(_WITHIN), taken.append)
    seen = [errands.is_busy]
    errands.run("x", lambda: go_on.wait(_WITHIN), taken.append)
    seen.append(errands.is_busy)

    go_on.set()
    deadline = time.monotonic() + _WITHIN
    while len(taken) < 16:
        assert time.monotonic() < deadline
        loop.turn(0.1)

    assert [*seen, errands.is_busy] == [False, True, False]
    errands.close()


def test_what_has_nothing_to_do_ends_too(loop: Loop) -> None:
    Errands(loop).close()
