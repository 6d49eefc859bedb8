"""Requests of routes whose host fails: they go to another one until something of an answer has come, never after."""

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from qmsup.errors import Code
from qmsup.ids import HostName, RouteName
from qmsup.listener.relay.order import RelayOrder, Remote, Wayfaring
from qmsup.units import Seconds
from qmsup.wire.listening import Ask, Done, FromScheduler, Granted, Refused
from tests.support.granting import GrantingScheduler, grant
from tests.support.relaying import Relaying, order, read_until, relaying_with_scheduler
from tests.support.servers import free_port
from tests.support.upstreams import Script, upstream

pytestmark = pytest.mark.usefixtures("places")

_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
A, B = HostName("a"), HostName("b")

Pair = tuple[Relaying, GrantingScheduler]


@pytest.fixture
def pair() -> Iterator[Pair]:
    with relaying_with_scheduler() as pair:
        yield pair


def _order(a: str, b: str, body: bytes = b"{}") -> RelayOrder:
    remotes = {
        name: Remote(
            name=name,
            upstream=where,
            lines=b"X-Api-Key: sk-%b\r\n" % name.encode(),
            answer_within=Seconds(0.5),
        )
        for name, where in ((A, a), (B, b))
    }
    return replace(order(body), way=Wayfaring(route=RouteName("r"), remotes=remotes))


def _grants(ask: Ask, wanted: RelayOrder) -> list[FromScheduler]:
    """The first host that was not tried."""
    assert ask.routed is not None
    assert wanted.way is not None
    for name, remote in wanted.way.remotes.items():
        if name not in ask.routed.tried:
            granted: Granted = grant(ask, remote.upstream)
            return [replace_host(granted, name)]
    return [Refused(request=ask.request, code=Code.NO_HOST, message="all were tried")]


def replace_host(granted: Granted, host: HostName) -> Granted:
    return Granted(
        request=granted.request,
        epoch=granted.epoch,
        model=granted.model,
        incarnation=granted.incarnation,
        upstream=granted.upstream,
        was_ready=True,
        waited_ms=0,
        host=host,
    )


def _hang_up(connection: socket.socket, _: bytes) -> None:
    connection.shutdown(socket.SHUT_RDWR)


def _stay_silent(connection: socket.socket, _: bytes) -> None:
    while connection.recv(1024):
        pass


FAILING: dict[str, Script] = {"hangs up": _hang_up, "is silent": _stay_silent}


@pytest.mark.parametrize("how", FAILING)
def test_a_host_that_gives_nothing_is_left_for_another(pair: Pair, how: str) -> None:
    engine, scheduler = pair
    with (
        upstream(FAILING[how]) as a,
        upstream(lambda connection, _: connection.sendall(_OK)) as b,
    ):
        wanted = _order(a.where, b.where, b"x" * 200_000)
        scheduler.on_ask = lambda ask: _grants(ask, wanted)
        with engine.hold(wanted) as client:
            said = read_until(client, b"ok")
        scheduler.hears(Done, lambda done: done.served)

    assert b"\r\nX-QM-Host: b\r\n" in said
    assert b"X-Api-Key: sk-a" in a.requests[0]
    assert b"X-Api-Key: sk-b" in b.requests[0]
    assert a.requests[0].partition(b"\r\n\r\n")[2] == b.requests[0].partition(b"\r\n\r\n")[2]
    assert scheduler.hears(Done).outcome == "failed"
    assert engine.do(lambda: engine.link.held) == 0


def test_a_host_that_is_not_there_is_left_and_a_large_body_is_sent_again(
    pair: Pair, tmp_path: Path
) -> None:
    engine, scheduler = pair
    data = bytes(range(256)) * 4096
    (tmp_path / "body").write_bytes(data)
    with upstream(lambda connection, _: connection.sendall(_OK)) as b:
        wanted = _order(f"127.0.0.1:{free_port()}", b.where)
        file = (tmp_path / "body").open("rb")
        spooled = order(file, length=len(data))
        wanted = replace(wanted, body=file, head=spooled.head)
        scheduler.on_ask = lambda ask: _grants(ask, wanted)
        with engine.hold(wanted) as client:
            read_until(client, b"ok")

        assert b.requests[0].partition(b"\r\n\r\n")[2] == data
    assert file.closed


def test_when_all_have_failed_the_client_is_told(pair: Pair) -> None:
    engine, scheduler = pair
    wanted = _order(f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}")
    scheduler.on_ask = lambda ask: _grants(ask, wanted)

    with engine.hold(wanted) as client:
        said = read_until(client, b"all were tried")

    assert said.startswith(b"HTTP/1.1 503 ")
    asked = scheduler.hears(Ask, count=3)
    assert asked.routed is not None
    assert asked.routed.tried == (A, B)
    assert asked.waited_ms == 0, "what it was tried for is no waiting"


def test_an_answer_that_has_begun_is_not_begun_again(pair: Pair) -> None:
    engine, scheduler = pair

    def break_off(connection: socket.socket, _: bytes) -> None:
        connection.sendall(_OK[:-1])

    with upstream(break_off) as a:
        wanted = _order(a.where, f"127.0.0.1:{free_port()}")
        scheduler.on_ask = lambda ask: _grants(ask, wanted)
        with engine.hold(wanted) as client:
            assert read_until(client, b"\r\n\r\no").endswith(b"o")
            assert client.recv(10) == b""

    assert "Ask" in scheduler.kinds()
    assert scheduler.kinds().count("Ask") == 1
