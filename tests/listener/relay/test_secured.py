"""Upstreams over TLS: a relay at work, real servers, and certificates of the tests' own."""

import contextlib
import os
import socket
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from qmsup.ids import HostName
from qmsup.listener.relay.order import RelayOrder, Remote
from qmsup.listener.relay.secured import Tls
from qmsup.spec import ANYONE
from qmsup.units import Seconds
from tests.support.certificates import certificate, needs_openssl, secure_upstream
from tests.support.relaying import Relaying, ending_context, order, read_all, read_until, relaying
from tests.support.upstreams import SSE_HEAD, chunked, plain, saying

pytestmark = needs_openssl


@pytest.fixture(scope="module")
def engine() -> Iterator[Relaying]:
    """One for all: no scheduler is needed for peers, and what a test holds it lets go of."""
    with (
        tempfile.TemporaryDirectory(prefix="qm-") as folder,
        pytest.MonkeyPatch.context() as patch,
        ending_context(),
    ):
        patch.setenv("QMSUP_RUNTIME_DIR", f"{folder}/run")
        with relaying() as engine:
            yield engine


def _over_tls(
    where: str,
    asked: RelayOrder | None = None,
    *,
    trust: str | None = None,
    name: str = "",
    within: float = 20.0,
) -> RelayOrder:
    host, _, port = where.rpartition(":")
    peer = Remote(
        name=HostName("far"),
        upstream=f"{name or host}:{port}",
        tls=Tls(name or host, str(certificate().file) if trust is None else trust),
        connect_within=Seconds(within),
        answer_within=Seconds(20.0),
    )
    return replace(asked or order(b"{}"), peer=peer)


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_a_peer_over_tls_gets_the_request_and_its_answer_is_passed_on(
    engine: Relaying, name: str
) -> None:
    with secure_upstream(saying(plain(b'{"a": 1}'))) as peer:
        with engine.hold(_over_tls(peer.where, name=name)) as client:
            said = read_until(client, b'{"a": 1}')

        assert peer.requests[0].startswith(b"POST /v1/x?secret=1 HTTP/1.1\r\n")
        assert peer.requests[0].endswith(b"\r\n\r\n{}")
    assert said.startswith(b"HTTP/1.1 200 OK\r\n")


def test_large_bodies_go_both_ways_whole(engine: Relaying) -> None:
    body, answer = os.urandom(3_000_000), os.urandom(5_000_000)
    with secure_upstream(saying(plain(answer))) as peer:
        with engine.hold(_over_tls(peer.where, order(body)), send_buffer=8192) as client:
            said = read_until(client, answer[-100:])

        assert peer.requests[0].partition(b"\r\n\r\n")[2] == body
    assert said.partition(b"\r\n\r\n")[2] == answer


def test_a_body_in_a_file_goes_whole(engine: Relaying) -> None:
    body = os.urandom(2_500_000)
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the relay closes it
    file.write(body)
    with secure_upstream(saying(plain(b"ok"))) as peer:
        asked = order(file, length=len(body))
        with engine.hold(_over_tls(peer.where, asked)) as client:
            read_until(client, b"ok")

        assert peer.requests[0].partition(b"\r\n\r\n")[2] == body


def test_a_stream_is_passed_on_event_by_event(engine: Relaying) -> None:
    go_on = threading.Event()

    def stream(connection: socket.socket, _: bytes) -> None:
        connection.sendall(SSE_HEAD + b"7\r\ndata: 1\r\n")
        go_on.wait(10)
        connection.sendall(chunked(b"data: 2\n\n"))

    with secure_upstream(stream) as peer, engine.hold(_over_tls(peer.where)) as client:
        read_until(client, b"data: 1")
        go_on.set()
        read_until(client, b"0\r\n\r\n")


_ELSE = "DNS:else.example"


def test_a_websocket_goes_over_tls_as_well(engine: Relaying) -> None:
    said = os.urandom(600_000)

    def echo(connection: socket.socket, _: bytes) -> None:
        connection.sendall(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
        )
        while data := connection.recv(65536):
            connection.sendall(data)

    asked = replace(order(method="GET"), upgrades=True)
    with secure_upstream(echo) as peer, engine.hold(_over_tls(peer.where, asked)) as client:
        read_until(client, b"\r\n\r\n")
        sender = threading.Thread(target=client.sendall, args=(said,))
        sender.start()
        heard = b""
        while len(heard) < len(said):
            heard += client.recv(65536)
        sender.join(10)

    assert heard == said


WRONG: dict[str, tuple[Callable[[], str], bytes]] = {
    "a certificate that nobody signed": (lambda: "", b"is not trusted (self-signed"),
    "one of another name": (
        lambda: str(certificate(_ELSE).file),
        b"is not trusted (IP address mismatch",
    ),
    "a file that is not there": (lambda: "/nowhere/ca.pem", b"/nowhere/ca.pem cannot be read"),
    "a file without certificates": (lambda: os.devnull, b"cannot be read"),
}


@pytest.mark.parametrize("case", WRONG)
def test_who_is_not_trusted_gets_nothing_and_the_client_is_told_why(
    engine: Relaying, case: str
) -> None:
    trust, words = WRONG[case]
    with secure_upstream(saying(plain(b"ok")), certificate(_ELSE)) as peer:
        with engine.hold(_over_tls(peer.where, trust=trust())) as client:
            said = read_until(client, words)

        assert peer.requests == []
    assert said.startswith(b"HTTP/1.1 502 ")


def test_a_file_of_certificates_that_is_renewed_counts(engine: Relaying, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    with secure_upstream(saying(plain(b"ok"))) as peer:
        asked = _over_tls(peer.where, trust=str(file))

        def said(marker: bytes) -> bytes:
            with engine.hold(replace(asked, request=order().request)) as client:
                return read_until(client, marker)

        said(b"cannot be read")
        file.write_bytes(certificate(_ELSE).file.read_bytes())
        said(b"is not trusted")
        file.write_bytes(certificate().file.read_bytes())
        os.utime(file, ns=(1, 1))
        assert said(b"ok").startswith(b"HTTP/1.1 200 ")
        file.write_bytes(b"half of it")
        assert said(b"ok").startswith(b"HTTP/1.1 200 ")


def test_anyone_is_trusted_where_the_operator_says_so(engine: Relaying) -> None:
    with (
        secure_upstream(saying(plain(b"ok")), certificate(_ELSE)) as peer,
        engine.hold(_over_tls(peer.where, trust=ANYONE)) as client,
    ):
        assert read_until(client, b"ok").startswith(b"HTTP/1.1 200 ")


def test_a_server_that_speaks_no_tls_is_told_of(engine: Relaying) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        engine.hold(_over_tls(f"127.0.0.1:{server.getsockname()[1]}")) as client,
    ):
        server.settimeout(20)
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            said = read_until(client, b"}}")

    assert b"write http in place of https" in said


def test_a_handshake_that_hangs_is_given_up(engine: Relaying) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        where = f"127.0.0.1:{server.getsockname()[1]}"
        with engine.hold(_over_tls(where, within=0.1)) as client:
            assert b"no connection within 0.1 s" in read_until(client, b"}}")


def test_a_client_that_leaves_during_the_handshake_ends_it(engine: Relaying) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)
        with engine.hold(_over_tls(f"127.0.0.1:{server.getsockname()[1]}")):
            connection, _ = server.accept()
            connection.settimeout(20)
            connection.recv(1)
        with connection, contextlib.suppress(ConnectionError):
            while connection.recv(65536):
                pass
    engine.until(lambda: engine.engine.held == 0)


def test_what_is_no_tls_in_the_middle_of_an_answer_is_told_of(engine: Relaying) -> None:
    def answer(connection: socket.socket, _: bytes) -> None:
        connection.sendall(SSE_HEAD + chunked(b"data: 1\n\n", ended=False))
        with socket.socket(fileno=os.dup(connection.fileno())) as bare:
            bare.sendall(b"HTTP/1.1 200 OK\r\n" * 100)

    with secure_upstream(answer) as peer, engine.hold(_over_tls(peer.where)) as client:
        said = read_all(client)

    assert b"the connection broke (TLS failed: " in said


_UNENDED = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nall there is"


def test_an_answer_that_its_server_ends_with_tls_s_own_word_is_whole(engine: Relaying) -> None:
    def answer(connection: socket.socket, _: bytes) -> None:
        assert isinstance(connection, ssl.SSLSocket)
        connection.sendall(_UNENDED)
        with contextlib.suppress(OSError):
            connection.unwrap()

    with secure_upstream(answer) as peer, engine.hold(_over_tls(peer.where)) as client:
        assert read_all(client).endswith(b"all there is")


def test_one_that_anybody_on_the_way_could_have_cut_is_not(engine: Relaying) -> None:
    with (
        secure_upstream(saying(_UNENDED)) as peer,
        engine.hold(_over_tls(peer.where)) as client,
        pytest.raises(ConnectionResetError),
    ):
        read_all(client)


def test_a_server_that_is_not_there_refuses(engine: Relaying, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        where = f"127.0.0.1:{server.getsockname()[1]}"
    with engine.hold(_over_tls(where)) as client:
        assert b"refuses connections" in read_until(client, b"}}")
