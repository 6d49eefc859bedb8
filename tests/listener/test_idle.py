import socket
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from gunicorn.config import Config
from gunicorn.workers.gthread import TConn

from qmsup.listener.idle import Idle
from qmsup.listener.relay.loop import Loop
from qmsup.units import Seconds


class Waiting:
    """An Idle, its loop, and what it has told."""

    def __init__(self, loop: Loop, timeout: float) -> None:
        self.loop = loop
        self.ready: list[TConn] = []
        self.closed = 0
        self.idle = Idle(
            loop, Seconds(timeout), on_ready=self.ready.append, on_closed=self._on_closed
        )
        self.clients: list[socket.socket] = []

    def add(self, *, has_begun: bool = False) -> TConn:
        near, far = socket.socketpair()
        self.clients.append(far)
        conn = TConn(Config(), near, ("127.0.0.1", 1), ("127.0.0.1", 2))
        self.idle.add(conn, has_begun=has_begun)
        return conn

    def _on_closed(self) -> None:
        self.closed += 1

    def end(self) -> None:
        self.idle.close_expired(everyone=True)
        self.loop.turn(0)
        for sock in (*self.clients, *(conn.sock for conn in self.ready)):
            sock.close()


@pytest.fixture
def waiting() -> Iterator[Waiting]:
    with closing(Loop()) as loop:
        waiting = Waiting(loop, 60.0)
        yield waiting
        waiting.end()


def test_bytes_or_an_end_make_a_connection_ready_once(waiting: Waiting) -> None:
    conns = [waiting.add() for _ in range(3)]
    waiting.clients[0].send(b"GET")
    waiting.clients[2].close()

    waiting.loop.turn(1)
    waiting.loop.turn(0)

    assert waiting.ready == [conns[0], conns[2]]
    assert len(waiting.idle) == 1


def test_who_stays_silent_is_closed_when_its_time_is_up(waiting: Waiting) -> None:
    waiting.add()
    waiting.loop.now -= 100
    silent = waiting.add()
    waiting.idle._deadlines[silent] = time.monotonic() - 1
    waiting.idle._deadlines = dict(sorted(waiting.idle._deadlines.items(), key=lambda kv: kv[1]))

    waiting.idle.close_expired()
    waiting.loop.turn(0)

    assert waiting.closed == 1
    assert waiting.clients[1].recv(1) == b""
    assert len(waiting.idle) == 1


def test_a_last_hour_is_everyones_and_who_comes_later_has_as_long(waiting: Waiting) -> None:
    waiting.add()
    waiting.loop.now = time.monotonic()

    waiting.idle.end_by(time.monotonic() + 30.0)
    waiting.loop.now += 50.0
    later = waiting.add()
    assert list(waiting.idle._deadlines.values()) == sorted(waiting.idle._deadlines.values())
    assert 78.0 < waiting.idle._deadlines[later] - time.monotonic() <= 80.0

    waiting.idle.end_by(time.monotonic())
    waiting.loop.now = time.monotonic()
    waiting.add()
    waiting.idle.close_expired()
    assert waiting.closed == 3


def test_who_is_in_the_middle_of_a_request_has_its_time_at_the_last_hour_too(
    waiting: Waiting,
) -> None:
    waiting.loop.now = time.monotonic()
    waiting.add()
    before = waiting.add(has_begun=True)
    waiting.idle.end_by(time.monotonic())
    waiting.add(has_begun=True)

    waiting.idle.close_expired()
    assert (waiting.closed, len(waiting.idle)) == (1, 2)

    waiting.clients[1].send(b"a")
    waiting.loop.turn(1)
    assert waiting.ready == [before]
    waiting.idle.close_expired(everyone=True)
    assert waiting.closed == 2


def test_a_connection_can_wait_again(waiting: Waiting) -> None:
    conn = waiting.add()
    waiting.clients[0].send(b"a")
    waiting.loop.turn(1)
    conn.sock.recv(10)

    waiting.idle.add(conn)
    waiting.clients[0].send(b"b")
    waiting.loop.turn(1)

    assert waiting.ready == [conn, conn]
    waiting.ready.pop()
