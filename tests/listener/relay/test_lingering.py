import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typing_extensions import override

from qmsup.listener.relay.lingering import Lingering, part
from qmsup.units import Seconds
from tests.support.relaying import Relaying, ending_context, read_all, relaying


@pytest.fixture
def engine(places: Path) -> Iterator[Relaying]:
    with ending_context(), relaying() as engine:
        yield engine


def _closed(ends: list[int]) -> None:
    ends.append(1)


def test_a_client_reads_everything_though_it_had_sent_more(engine: Relaying) -> None:
    client, ours = engine.connection()
    ends: list[int] = []
    client.sendall(b"unread" * 1000)
    ours.sendall(b"x" * 100_000)

    engine.do(lambda: engine.engine.linger(ours, lambda: _closed(ends)))

    assert read_all(client) == b"x" * 100_000
    engine.until(lambda: ends == [1])
    engine.until(lambda: ours.fileno() == -1)


def test_a_client_that_stays_is_closed_when_its_time_is_up_and_delays_nobody(
    engine: Relaying,
) -> None:
    client, ours = engine.connection()
    ends: list[int] = []
    lingering = Lingering(engine.engine, ours, lambda: _closed(ends))

    engine.do(lambda: lingering.start(Seconds(0.2)))
    started = time.monotonic()
    engine.do(lambda: None)

    assert client.recv(10) == b""
    engine.until(lambda: ends == [1])
    assert time.monotonic() - started < 10
    client.close()


def test_a_client_that_keeps_talking_is_not_listened_to_for_ever(engine: Relaying) -> None:
    client, ours = engine.connection()
    ends: list[int] = []
    engine.do(lambda: engine.engine.linger(ours, lambda: _closed(ends)))

    with pytest.raises(ConnectionError):
        client.sendall(b"x" * 100_000_000)

    engine.until(lambda: ends == [1])
    client.close()


def test_a_connection_that_is_gone_is_closed_at_once(engine: Relaying) -> None:
    client, ours = engine.connection()
    ends: list[int] = []
    ours.setblocking(True)
    client.close()
    ours.recv(1)
    ours.close()

    engine.do(lambda: engine.engine.linger(ours, lambda: _closed(ends)))

    assert ends == [1]


def test_who_got_only_a_part_sees_a_connection_that_broke(engine: Relaying) -> None:
    client, ours = engine.connection()
    ends: list[int] = []

    engine.do(lambda: part(engine.engine, ours, lambda: _closed(ends), is_whole=False))

    with client, pytest.raises(ConnectionResetError):
        client.recv(10)
    assert ends == [1]


def test_who_got_all_sees_an_end_in_good_order(engine: Relaying) -> None:
    client, ours = engine.connection()
    ends: list[int] = []

    engine.do(lambda: part(engine.engine, ours, lambda: _closed(ends), is_whole=True))

    assert read_all(client) == b""
    engine.until(lambda: ends == [1])


class _Unreachable(socket.socket):
    """Its client's machine is gone: the kernel has asked for it long enough."""

    @override
    def recv(self, *_: object) -> bytes:
        raise TimeoutError


def test_who_is_out_of_reach_is_closed_at_once(engine: Relaying) -> None:
    client, ours = engine.connection()
    ends: list[int] = []
    lost = _Unreachable(fileno=ours.detach())
    lingering = Lingering(engine.engine, lost, lambda: _closed(ends))
    client.sendall(b"something to look at")

    engine.do(lambda: lingering.start(Seconds(3600.0)))

    engine.until(lambda: ends == [1])
    client.close()
