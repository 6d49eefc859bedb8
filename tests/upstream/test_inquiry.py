"""Questions to servers that answer well, badly, without end, or by and by: real ones."""

import gzip
import socket
import time
from collections.abc import Callable

import pytest

from qmsup.spec import ANYONE
from qmsup.units import Seconds
from qmsup.upstream.inquiry import Answer, Inquirer, NoAnswerError
from qmsup.upstream.trust import context_of
from tests.support.certificates import certificate, needs_openssl, secure_upstream
from tests.support.servers import free_port
from tests.support.upstreams import plain, saying, upstream

_MOST = 1000
_HEAD = b"HTTP/1.1 200 OK\r\n"


def _asked(where: str, *, is_head_enough: bool = False, trust: str | None = None) -> Answer:
    tls = None if trust is None else context_of(trust)
    inquirer = Inquirer(where=where, tls=tls, api_key="sk-1", within=Seconds(0.5))
    if is_head_enough:
        return Answer(status=inquirer.status("/x"), body=b"")
    return inquirer.get("/x", _MOST)


def _refusal(where: str, *, is_head_enough: bool = False) -> str:
    began = time.monotonic()
    with pytest.raises(NoAnswerError) as refused:
        _asked(where, is_head_enough=is_head_enough)
    assert time.monotonic() - began < 10
    return str(refused.value)


@pytest.mark.parametrize(
    "rest",
    [
        b"Content-Length: 2\r\n\r\n{}",
        b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    ],
)
def test_an_answer_that_is_whole_is_not_waited_for(rest: bytes) -> None:
    """Though the connection stays."""

    def stay(connection: socket.socket, _: bytes) -> None:
        connection.sendall(_HEAD + rest)
        connection.recv(1)

    with upstream(stay) as server:
        assert _asked(server.where) == Answer(status=200, body=b"{}")

        (request,) = server.requests
    assert request.startswith(b"GET /x HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\nAuthorization: Bearer sk-1\r\n" in request


def test_one_without_a_length_ends_with_its_connection() -> None:
    with upstream(saying(_HEAD + b"\r\nall of it")) as server:
        assert _asked(server.where).body == b"all of it"


def test_who_sends_us_elsewhere_has_not_answered() -> None:
    with (
        upstream(saying(plain(b"{}"))) as other,
        upstream(
            saying(
                b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: http://%b/x\r\n\r\n"
                % other.where.encode()
            )
        ) as server,
    ):
        assert _asked(server.where).status == 302
        assert other.requests == []


def test_nothing_is_unpacked() -> None:
    packed = gzip.compress(b"0" * 100_000)
    head = b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    with upstream(saying(_HEAD + head + packed)) as server:
        assert _asked(server.where).body == packed


def _without_end(piece: bytes, pause: float) -> Callable[[socket.socket, bytes], None]:
    def answer(connection: socket.socket, _: bytes) -> None:
        connection.sendall(_HEAD)
        while True:
            connection.sendall(piece)
            time.sleep(pause)

    return answer


@pytest.mark.parametrize("is_head_enough", [True, False])
@pytest.mark.parametrize(
    ("piece", "pause", "because"),
    [
        (b"x" * 100_000, 0.0, "/x cannot be read ("),
        (b"x", 0.05, "/x did not answer within 0.5 s"),
    ],
)
def test_a_head_without_end_costs_no_more_than_it_may(
    *, is_head_enough: bool, piece: bytes, pause: float, because: str
) -> None:
    with upstream(_without_end(piece, pause)) as server:
        assert _refusal(server.where, is_head_enough=is_head_enough).startswith(because)


@pytest.mark.parametrize(
    ("piece", "pause", "because"),
    [
        (b"x" * 100_000, 0.0, "/x answered with more than 1000 bytes"),
        (b"x", 0.05, "/x did not answer within 0.5 s"),
    ],
)
def test_so_does_a_body_and_a_status_does_not_wait_for_it(
    piece: bytes, pause: float, because: str
) -> None:
    with upstream(_without_end(b"\r\n\r\n" + piece, pause)) as server:
        assert _refusal(server.where).startswith(because)
        assert _asked(server.where, is_head_enough=True).status == 200


@pytest.mark.parametrize(
    "said",
    [b"", b"hello\r\n\r\n", b"HTTP/1.1 no number\r\n\r\n", _HEAD + b"Content-Length: 9\r\n\r\n{}"],
)
def test_what_is_no_answer_cannot_be_read(said: bytes) -> None:
    with upstream(saying(said)) as server:
        assert _refusal(server.where).startswith("/x cannot be read (")


def test_a_server_that_is_not_there_cannot_be_reached() -> None:
    assert _refusal(f"127.0.0.1:{free_port()}") == "it cannot be reached"


@needs_openssl
@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
@pytest.mark.parametrize("by_file", [True, False])
def test_over_tls_who_is_trusted_is_asked(*, by_file: bool) -> None:
    with secure_upstream(saying(plain(b"{}"))) as server:
        trust = str(certificate().file) if by_file else ANYONE
        assert _asked(server.where, trust=trust) == Answer(status=200, body=b"{}")


@needs_openssl
def test_over_tls_who_is_not_trusted_is_not_asked() -> None:
    with (
        secure_upstream(saying(plain(b"{}"))) as server,
        pytest.raises(NoAnswerError, match=r"not trusted \(self-signed certificate\)") as refused,
    ):
        _asked(server.where, trust="")

    assert refused.value.is_distrust
    assert server.requests == []
