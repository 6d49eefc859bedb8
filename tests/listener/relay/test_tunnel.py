"""Connections that speak another protocol: a plain pipe both ways, over real sockets."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from qmsup.listener.relay.loop import Loop
from qmsup.listener.relay.tunnel import Tunnel
from qmsup.wire.listening import Ask, CutOff, Done
from tests.support.granting import GrantingScheduler, grant
from tests.support.relaying import (
    Relaying,
    order,
    read_all,
    read_until,
    relaying_with_scheduler,
    wait_until,
)
from tests.support.upstreams import Upstream, plain, saying, upstream

SWITCH = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: x\r\n\r\n"
)
LARGE = bytes(range(256)) * 80_000
"""More than both kernels' buffers take."""


@pytest.fixture
def both(places: Path) -> Iterator[tuple[Relaying, GrantingScheduler]]:
    with relaying_with_scheduler() as both:
        yield both


def echoing(connection: socket.socket, _request: bytes) -> None:
    connection.sendall(SWITCH)
    while data := connection.recv(65536):
        connection.sendall(data)


def opened(both: tuple[Relaying, GrantingScheduler], child: Upstream) -> socket.socket:
    """A client whose tunnel is asked for."""
    engine, scheduler = both
    scheduler.on_ask = lambda ask: [grant(ask, child.where)]
    return engine.hold(replace(order(method="GET"), upgrades=True))


def test_what_either_side_says_reaches_the_other(
    both: tuple[Relaying, GrantingScheduler],
) -> None:
    with upstream(echoing) as child, opened(both, child) as client:
        head = read_until(client, b"\r\n\r\n")
        for said in (b"\x00\xff one", b"two"):
            client.sendall(said)
            assert read_until(client, said) == said

    lines = head.split(b"\r\n")
    assert lines[0] == b"HTTP/1.1 101 Switching Protocols"
    assert lines.count(b"Upgrade: websocket") == lines.count(b"Connection: Upgrade") == 1
    assert b"Sec-WebSocket-Accept: x" in lines
    assert b"X-QM-Model: m" in lines
    assert both[1].hears(Done).outcome == "finished"
    both[0].until(lambda: both[0].ends == [False])


def test_what_comes_along_with_the_101_is_passed_on_and_the_end_after_it(
    both: tuple[Relaying, GrantingScheduler],
) -> None:
    with upstream(saying(SWITCH + LARGE)) as child, opened(both, child) as client:
        assert read_all(client).partition(b"\r\n\r\n")[2] == LARGE

    assert both[1].hears(Done).outcome == "finished"


def test_much_of_it_passes_whole_both_ways_at_once(
    both: tuple[Relaying, GrantingScheduler],
) -> None:
    with upstream(echoing) as child, opened(both, child) as client:
        read_until(client, b"\r\n\r\n")
        thread = threading.Thread(target=client.sendall, args=(LARGE,))
        thread.start()
        echoed = b""
        while len(echoed) < len(LARGE):
            echoed += client.recv(1 << 20)
        thread.join(10)

    assert echoed == LARGE


def test_who_does_not_read_holds_up_the_other_and_is_not_read_ahead_of(
    both: tuple[Relaying, GrantingScheduler],
) -> None:
    count = [0]

    def pour(connection: socket.socket, _request: bytes) -> None:
        connection.sendall(SWITCH)
        with suppress(OSError):
            while True:
                count[0] += connection.send(bytes(65536))

    with upstream(pour) as child, opened(both, child) as client:
        read_until(client, b"\r\n\r\n")
        wait_until_still(both[0], count)
        poured = count[0]
        client.recv(1 << 20)
        client.close()

        assert poured < 64 * 1024 * 1024
        assert both[1].hears(Done).outcome == "abandoned"


def wait_until_still(engine: Relaying, count: list[int]) -> None:
    """Until a number is the same after ten turns of the loop."""
    seen = -1
    while count[0] != seen:
        seen = count[0]
        wait_until(partial(_has_turned, engine, engine.turns + 10))


def _has_turned(engine: Relaying, turns: int) -> bool:
    return engine.turns >= turns


def test_a_client_that_leaves_ends_it_at_the_server(
    both: tuple[Relaying, GrantingScheduler],
) -> None:
    gone, heard = threading.Event(), list[bytes]()

    def listen(connection: socket.socket, _request: bytes) -> None:
        connection.sendall(SWITCH)
        while data := connection.recv(65536):
            heard.append(data)
        gone.set()

    with upstream(listen) as child:
        client = opened(both, child)
        read_until(client, b"\r\n\r\n")
        client.sendall(b"last words")
        client.close()

        assert gone.wait(10)
    assert b"".join(heard) == b"last words"
    assert both[0].do(lambda: both[0].engine.held) == 0


def test_a_lease_that_is_void_resets_it(both: tuple[Relaying, GrantingScheduler]) -> None:
    engine, scheduler = both
    with upstream(echoing) as child, opened(both, child) as client:
        read_until(client, b"\r\n\r\n")
        scheduler.say(CutOff(scheduler.hears(Ask).request, "model_unloaded", "it is unloaded"))

        with pytest.raises(ConnectionResetError):
            client.recv(1)
    engine.until(lambda: engine.engine.held == 0)


def test_a_server_whose_connection_breaks_has_failed_and_the_client_sees_it(
    both: tuple[Relaying, GrantingScheduler],
) -> None:
    def drop(connection: socket.socket, _request: bytes) -> None:
        connection.sendall(SWITCH)
        connection.recv(1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    with upstream(drop) as child, opened(both, child) as client:
        read_until(client, b"\r\n\r\n")
        client.sendall(b"x")
        with pytest.raises(ConnectionResetError):
            client.recv(1)

    assert both[1].hears(Done).outcome == "failed"


def test_a_side_that_takes_nothing_for_minutes_is_stalled() -> None:
    loop = Loop()
    ends = [socket.socketpair(), socket.socketpair()]
    for ours, _ in ends:
        ours.setblocking(False)
    tunnel = Tunnel(loop, ends[0][0], ends[1][0], lambda _broken: None, lambda: None)

    tunnel.send(LARGE)
    now = loop.now

    assert not tunnel.is_stalled(now + 299)
    assert tunnel.is_stalled(now + 301)
    assert 0 < tunnel.stop() < len(LARGE)
    loop.close()
    for pair in ends:
        for end in pair:
            end.close()


def test_an_ordinary_answer_is_one_all_the_same(
    both: tuple[Relaying, GrantingScheduler],
) -> None:
    with (
        upstream(saying(plain(b"no", status=b"426 Upgrade Required"))) as child,
        opened(both, child) as client,
    ):
        answer = read_until(client, b"no")

    assert answer.startswith(b"HTTP/1.1 426")
    assert b"Connection: keep-alive" in answer
    both[0].until(lambda: both[0].ends == [True])


def test_a_101_that_nobody_asked_for_is_refused(
    both: tuple[Relaying, GrantingScheduler],
) -> None:
    engine, scheduler = both
    with upstream(saying(SWITCH)) as child:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]
        with engine.hold(order(method="GET")) as client:
            assert read_until(client, b"}}").startswith(b"HTTP/1.1 502")
