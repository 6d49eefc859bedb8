import gc
import socket
from collections.abc import Iterator

import pytest
from gunicorn.config import Config
from gunicorn.workers.gthread import TConn

from qmsup.listener.arrival import LONGEST, MOST, Arrival, Arriving, arrival_of

LINE = b"POST /v1/completions HTTP/1.1\r\n"
PARTIAL = {
    "a letter": b"P",
    "half a line": LINE[:20],
    "a line": LINE,
    "half a head": LINE + b"Host: a\r\nContent-Le",
    "no body": LINE + b"Content-Length: 5\r\n\r\n",
    "half a body": LINE + b"content-LENGTH:\t5\r\nHost: a\r\n\r\nhell",
}
HERE = {
    "a whole one": LINE + b"Content-Length: 5\r\n\r\nhello",
    "more than one": LINE + b"Content-Length: 5\r\n\r\nhelloGET",
    "one without a body": b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "foreign bytes": b"\x16\x03\x01\r\n",
    "bare line ends": b"GET / HTTP/1.1\nHost: a\n\n",
    "a line without version": b"GET /\r\n",
    "a head without end": LINE + b"A: " + b"b" * MOST,
}
LONG = {
    "much": LINE + b"Content-Length: 100000\r\n\r\n",
    "very much": LINE + b"Content-Length: 99999999999999999999\r\n\r\n",
    "no number": LINE + b"Content-Length: five\r\n\r\n",
    "two lengths": LINE + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "chunks": LINE + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "a body on demand": LINE + b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n",
}


@pytest.mark.parametrize("case", PARTIAL)
def test_what_goes_on_is_waited_for(case: str) -> None:
    assert arrival_of(PARTIAL[case]) is Arrival.PARTIAL


@pytest.mark.parametrize("case", HERE)
def test_what_is_here_or_can_only_be_refused_is_not(case: str) -> None:
    assert arrival_of(HERE[case]) is Arrival.HERE


@pytest.mark.parametrize("case", LONG)
def test_a_body_of_unknown_or_great_length_has_to_be_read(case: str) -> None:
    assert arrival_of(LONG[case]) is Arrival.LONG


@pytest.fixture
def conn() -> Iterator[TConn]:
    near, far = socket.socketpair()
    with near, far:
        yield TConn(Config(), near, ("127.0.0.1", 1), ("127.0.0.1", 2))


def test_beginnings_are_kept_until_they_are_dealt_with(conn: TConn) -> None:
    arriving = Arriving()
    assert arriving.so_far(conn) == b""

    assert arriving.keep(conn, b"P", 1.0)
    assert arriving.keep(conn, b"PO", 2.0)
    assert arriving.so_far(conn) == b"PO"

    arriving.forget(conn)
    assert arriving.so_far(conn) == b""
    assert len(arriving) == 0


def test_a_request_has_a_minute_to_come_in(conn: TConn) -> None:
    arriving = Arriving()

    arriving.keep(conn, b"P", 1.0)

    assert arriving.keep(conn, b"PO", LONGEST)
    assert not arriving.keep(conn, b"POS", 1.0 + LONGEST)


def test_a_connection_that_is_gone_is_forgotten() -> None:
    arriving = Arriving()
    near, far = socket.socketpair()
    with near, far:
        gone = TConn(Config(), near, ("127.0.0.1", 1), ("127.0.0.1", 2))
        arriving.keep(gone, b"P", 1.0)
        del gone
        gc.collect()
        assert len(arriving) == 0
