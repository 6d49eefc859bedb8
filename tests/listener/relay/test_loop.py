import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from typing_extensions import override

from qmsup.listener.relay.loop import Loop
from qmsup.units import Seconds


@pytest.fixture
def loop() -> Iterator[Loop]:
    with closing(Loop()) as loop:
        yield loop


@pytest.fixture
def pairs() -> Iterator[tuple[tuple[socket.socket, socket.socket], ...]]:
    pairs = tuple(socket.socketpair() for _ in range(2))
    yield pairs
    for pair in pairs:
        for sock in pair:
            sock.close()


Pairs = tuple[tuple[socket.socket, socket.socket], ...]


def turn_until(loop: Loop, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        loop.turn(0.1)


def test_timers_call_in_order_and_once(loop: Loop) -> None:
    called: list[str] = []

    loop.after(Seconds(0.05), lambda: called.append("late"))
    loop.after(Seconds(0.0), lambda: called.append("soon"))

    turn_until(loop, lambda: len(called) > 1)
    loop.turn(0)
    assert called == ["soon", "late"]


def test_a_turn_waits_no_longer_than_its_next_timer(loop: Loop) -> None:
    called: list[str] = []
    loop.after(Seconds(0.01), lambda: called.append("x"))

    loop.turn(60)
    loop.turn(0)

    assert called == ["x"]


def test_a_descriptor_closed_in_a_turn_is_not_taken_for_its_successor(
    loop: Loop, pairs: Pairs
) -> None:
    heard: list[str] = []

    def close_both(_event: int) -> None:
        # Both are ready in the same turn; whichever comes first ends both.
        heard.append("first" if not heard else "stale")
        for near, _ in pairs:
            loop.discard(near.fileno(), near)

    for near, far in pairs:
        far.send(b"x")
        loop.watch(near.fileno(), select.EPOLLIN, close_both)
    loop.turn(1)

    assert heard == ["first"]
    assert [near.fileno() for near, _ in pairs] == [-1, -1]


def test_the_last_one_has_its_turn_after_all_others(loop: Loop, pairs: Pairs) -> None:
    (last, last_far), (near, far) = pairs
    heard: list[str] = []
    loop.watch_last(last.fileno(), lambda _event: heard.append("last"))
    loop.watch(near.fileno(), select.EPOLLIN, lambda _event: heard.append("other"))
    last_far.send(b"x")
    far.send(b"x")

    loop.turn(1)

    assert heard == ["other", "last"]


def test_what_is_paused_or_released_is_not_heard_not_even_its_end(loop: Loop, pairs: Pairs) -> None:
    (near, far), (other, other_far) = pairs
    heard: list[int] = []
    loop.watch(near.fileno(), select.EPOLLIN, heard.append)
    loop.watch(other.fileno(), select.EPOLLIN, heard.append)
    loop.pause(near.fileno())
    loop.release(other.fileno())
    far.close()
    other_far.close()

    loop.turn(0)
    before = list(heard)
    loop.resume(near.fileno(), select.EPOLLIN)
    loop.turn(1)

    assert before == []
    assert heard[0] & select.EPOLLHUP


def test_a_turn_says_whether_more_than_time_passed(loop: Loop, pairs: Pairs) -> None:
    (near, far), _ = pairs
    heard: list[int] = []
    loop.watch(near.fileno(), select.EPOLLIN, heard.append)
    loop.after(Seconds(0.0), lambda: None)
    far.send(b"x")

    first = loop.turn(1)
    near.recv(1)

    assert [first, loop.turn(0)] == [True, False]


def test_other_events_can_be_watched_instead(loop: Loop, pairs: Pairs) -> None:
    (near, _), _ = pairs
    heard: list[int] = []
    loop.watch(near.fileno(), select.EPOLLIN, heard.append)

    loop.turn(0)
    loop.change(near.fileno(), select.EPOLLOUT)
    loop.turn(1)

    assert heard == [select.EPOLLOUT]


def test_a_fault_is_its_callers_unless_a_subclass_knows_better(loop: Loop, pairs: Pairs) -> None:
    (near, far), _ = pairs
    far.send(b"x")

    def break_down(_event: int) -> None:
        raise ZeroDivisionError

    loop.watch(near.fileno(), select.EPOLLIN, break_down)

    with pytest.raises(ZeroDivisionError):
        loop.turn(1)


class _Forgiving(Loop):
    def __init__(self) -> None:
        super().__init__()
        self.faults: list[object] = []

    @override
    def on_fault(self, handler: Callable[..., None]) -> None:
        self.faults.append(handler)


def test_a_timer_that_fails_ends_nothing() -> None:
    loop = _Forgiving()
    heard: list[str] = []

    def break_down() -> None:
        raise ZeroDivisionError

    loop.after(Seconds(0), break_down)
    loop.after(Seconds(0), lambda: heard.append("the next"))
    loop.turn(0)
    loop.close()

    assert (loop.faults, heard) == ([break_down], ["the next"])
