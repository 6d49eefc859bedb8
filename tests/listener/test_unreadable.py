"""Requests that no server can read: the answer is an envelope, whoever found the fault."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmsup import places as our_places
from qmsup.wire.listening import Hello
from tests.support.granting import granting_scheduler
from tests.support.gunicorns import Gunicorn, gunicorn
from tests.support.relaying import ending_context, read_all, read_until


@pytest.fixture(params=["auto", "python"])
def listener(places: Path, request: pytest.FixtureRequest) -> Iterator[Gunicorn]:
    """A gunicorn with each of its parsers."""
    our_places.runtime_dir().mkdir(parents=True)
    with (
        ending_context(),
        granting_scheduler(our_places.scheduler_endpoint()) as scheduler,
        gunicorn(places / "log", http_parser=request.param) as running,
    ):
        scheduler.hears(Hello)
        yield running


CHAT = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n"
LIST = b"GET /v1/models HTTP/1.1\r\nHost: a\r\n"

UNREADABLE = {
    "no request": (b"hello\r\n\r\n", 400, "METHOD /path HTTP/1.1"),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, "plain HTTP/1.1"),
    "another version": (b"GET / HTTP/3.0\r\nHost: a\r\n\r\n", 400, "plain HTTP/1.1"),
    "a method in small letters": (b"get / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "METHOD"),
    "a long line": (b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414, "too long"),
    "a long header": (LIST + b"X: " + b"x" * 20_000 + b"\r\n\r\n", 431, "too long"),
    "many headers": (LIST + b"X: 1\r\n" * 200 + b"\r\n", 431, "too many"),
    "another expectation": (CHAT + b"Expect: wonders\r\n\r\n", 417, "100-continue"),
    "a folded header": (LIST + b"X: 1\r\n 2\r\n\r\n", 400, "line"),
    "a bare line feed": (LIST + b"X: 1\nY: 2\r\n\r\n", 400, "header"),
    "a NUL": (LIST + b"X: \0\r\n\r\n", 400, "header"),
    "no colon": (LIST + b"nonsense\r\n\r\n", 400, "Name: value"),
    "a space in a name": (CHAT + b"Content-Length : 2\r\n\r\n{}", 400, "header"),
    "two lengths": (CHAT + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400, "header"),
    "a length and chunks": (
        CHAT + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
        "header",
    ),
    "an odd transfer coding": (CHAT + b"Transfer-Encoding: xchunked\r\n\r\n", 400, "transfer"),
    "a compressed transfer": (CHAT + b"Transfer-Encoding: gzip\r\n\r\n", 400, "transfer"),
    "a length that is none": (CHAT + b"Content-Length: 0x2\r\n\r\n{}", 400, "header"),
    "chunks for an old client": (
        b"POST /v1/chat/completions HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
        "header",
    ),
    "a chunk without size": (CHAT + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n", 400, "chunk"),
    "a chunk that is longer": (
        CHAT + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n",
        400,
        "chunk",
    ),
}  # fmt: skip


def test_the_answer_is_an_envelope_that_says_what_to_change(listener: Gunicorn) -> None:
    for what, (request, status, words) in UNREADABLE.items():
        with listener.connect() as client:
            client.sendall(request)
            head, _, body = read_all(client).partition(b"\r\n\r\n")

        assert head.startswith(b"HTTP/1.1 %d " % status), (what, head)
        assert b"Content-Type: application/json" in head, what
        assert b"Connection: close" in head, what
        error = json.loads(body)["error"]
        assert set(error) == {"message", "type", "param", "code"}, what
        assert (error["code"], error["type"]) == ("bad_request", "invalid_request_error"), what
        assert words.lower() in error["message"].lower(), (what, error)


def test_the_log_tells_of_it_without_what_the_client_sent(listener: Gunicorn) -> None:
    with listener.connect() as client:
        client.sendall(LIST + b"Authorization: sk-secret\0\r\n\r\n")
        read_all(client)

    listener.logs("request.unreadable")
    assert "InvalidHeader" in listener.log()
    assert "sk-secret" not in listener.log()
    assert "Traceback" not in listener.log()


def test_a_page_of_a_browser_may_read_why(listener: Gunicorn) -> None:
    with listener.connect() as client:
        client.sendall(
            CHAT + b"Origin: http://x\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n"
        )
        assert read_all(client).startswith(b"HTTP/1.1 400")
        # what could be read of it is known where the head as a whole was understood
    with listener.connect() as client:
        client.sendall(LIST + b"Origin: http://x\r\n\r\n")
        assert b"Access-Control-Allow-Origin: http://x" in read_until(client, b"\r\n\r\n")


def test_a_request_that_was_answered_is_not_answered_again(listener: Gunicorn) -> None:
    """The rest of a body is read so that another request can follow; if it is broken, none can."""
    with listener.connect() as client:
        client.sendall(LIST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")
        said = read_all(client)

    assert said.startswith(b"HTTP/1.1 200")
    assert said.count(b"HTTP/1.1") == 1


def test_nobody_but_the_request_says_what_its_path_is(listener: Gunicorn) -> None:
    with listener.connect() as client:
        client.sendall(LIST + b"SCRIPT_NAME: /other\r\nScript-Name: /v1\r\n\r\n")

        assert read_until(client, b"\r\n\r\n").startswith(b"HTTP/1.1 200")


def test_a_client_that_breaks_off_leaves_no_stack_trace(listener: Gunicorn) -> None:
    for beginning in (CHAT, CHAT + b"Content-Length: 90000\r\n\r\n{", LIST[:20]):
        client = listener.connect()
        client.sendall(beginning)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
    with listener.connect() as client:
        client.sendall(LIST + b"\r\n")
        read_until(client, b"\r\n\r\n")

    assert "Traceback" not in listener.log()
