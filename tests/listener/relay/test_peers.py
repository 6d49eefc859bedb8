"""Requests that go to a peer at once: real sockets, and a scheduler that must not hear of them."""

import socket
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from qmsup.ids import HostName
from qmsup.listener.relay.order import RelayOrder, Remote
from qmsup.units import Seconds
from tests.support.relaying import Relaying, ending_context, order, read_until, relaying
from tests.support.servers import free_port
from tests.support.upstreams import upstream

pytestmark = pytest.mark.usefixtures("places")

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-QM-Host: theirs\r\n\r\nok"


@pytest.fixture
def engine() -> Iterator[Relaying]:
    with ending_context(), relaying() as engine:
        yield engine


def _for(where: str, **more: object) -> RelayOrder:
    peer = Remote(
        name=HostName("far"),
        upstream=where,
        path=b"/api",
        lines=b"Authorization: Bearer sk-peer\r\n",
        answer_within=Seconds(0.5),
    )
    return replace(order(b"{}"), peer=peer, **more)  # type: ignore[arg-type]  # its fields


def test_a_peer_gets_the_request_under_its_path_with_its_key_and_no_scheduler_is_needed(
    engine: Relaying,
) -> None:
    with upstream(lambda connection, _: connection.sendall(_ANSWER)) as peer:
        with engine.hold(_for(peer.where)) as client:
            said = read_until(client, b"ok")

        head, _, body = peer.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /api/v1/x?secret=1 HTTP/1.1\r\n")
    assert b"\r\nAuthorization: Bearer sk-peer\r\n" in head
    assert f"\r\nHost: {peer.where}".encode() in head
    assert body == b"{}"
    assert b"\r\nX-QM-Host: far\r\n" in said
    assert b"theirs" not in said
    assert b"X-QM-Model-Loaded" not in said
    assert engine.do(lambda: engine.link.held) == 0


def test_a_peer_that_is_not_there_is_told_of(engine: Relaying) -> None:
    port = free_port()
    with engine.hold(_for(f"127.0.0.1:{port}")) as client:
        said = read_until(client, b"refuses connections")

    assert f": far at 127.0.0.1:{port} refuses connections".encode() in said
    assert said.startswith(b"HTTP/1.1 502 ")


def test_a_peer_that_does_not_answer_in_its_time_is_given_up(engine: Relaying) -> None:
    gone = threading.Event()

    def stay_silent(connection: socket.socket, _: bytes) -> None:
        while connection.recv(1024):
            pass
        gone.set()

    with upstream(stay_silent) as peer:
        with engine.hold(_for(peer.where)) as client:
            said = read_until(client, b"no answer within 0.5 s")
        assert gone.wait(10)

    assert said.startswith(b"HTTP/1.1 502 ")


def test_a_client_that_leaves_ends_its_request_to_the_peer(engine: Relaying) -> None:
    left = threading.Event()

    def wait(connection: socket.socket, _: bytes) -> None:
        left.set()
        while connection.recv(1024):
            pass
        gone.set()

    gone = threading.Event()
    with upstream(wait) as peer:
        with engine.hold(_for(peer.where)):
            assert left.wait(10)
        assert gone.wait(10)
