"""Clients that ask before they send, and bodies that nobody reads."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmsup import places as our_places
from qmsup.wire.listening import Hello
from tests.support.granting import GrantingScheduler, grant, granting_scheduler
from tests.support.gunicorns import Gunicorn, gunicorn
from tests.support.relaying import ending_context, read_all, read_until
from tests.support.upstreams import plain, saying, upstream

Both = tuple[Gunicorn, GrantingScheduler]
BODY = json.dumps({"model": "m", "messages": []}).encode()
GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"


@pytest.fixture
def both(places: Path) -> Iterator[Both]:
    our_places.runtime_dir().mkdir(parents=True)
    with (
        ending_context(),
        granting_scheduler(our_places.scheduler_endpoint()) as scheduler,
        gunicorn(places / "log") as running,
    ):
        scheduler.hears(Hello)
        yield running, scheduler


def _asking(framing: str, path: str = "/v1/chat/completions", version: str = "1.1") -> bytes:
    return f"POST {path} HTTP/{version}\r\nHost: a\r\nExpect: 100-continue\r\n{framing}\r\n\r\n".encode()


@pytest.mark.parametrize("framing", [f"Content-Length: {len(BODY)}", "Transfer-Encoding: chunked"])
def test_a_client_that_asks_is_told_to_go_on_and_keeps_its_connection(
    both: Both, framing: str
) -> None:
    running, scheduler = both
    sent = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY) if "chunked" in framing else BODY
    with upstream(saying(plain(b"hello"))) as child, running.connect() as client:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]
        for _ in range(2):
            client.sendall(_asking(framing))
            assert read_until(client, b"\r\n\r\n") == GO_ON
            client.sendall(sent)

            assert read_until(client, b"hello").startswith(b"HTTP/1.1 200")

    assert child.requests[0].partition(b"\r\n\r\n")[2] == BODY
    assert b"xpect" not in child.requests[0]


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (_asking("Content-Length: 999999999"), 413),
        (_asking("Content-Length: 5", path="/v1/nothing"), 404),
    ],
)
def test_who_is_refused_anyway_need_not_send(both: Both, request_: bytes, status: int) -> None:
    running, _ = both
    with running.connect() as client:
        client.sendall(request_)

        answer = read_all(client)

    assert answer.startswith(b"HTTP/1.1 %d" % status)
    assert b"connection: close" in answer.lower()
    assert b"100 Continue" not in answer


def test_who_has_nothing_to_send_is_not_asked_for_it(both: Both) -> None:
    running, _ = both
    with running.connect() as client:
        for _ in range(2):
            client.sendall(b"GET /v1/models HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n")
            assert read_until(client, b"}]}").startswith(b"HTTP/1.1 200")


def test_an_old_client_cannot_know_what_going_on_means(both: Both) -> None:
    running, scheduler = both
    with upstream(saying(plain(b"hello"))) as child, running.connect() as client:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]
        client.sendall(_asking(f"Content-Length: {len(BODY)}", version="1.0") + BODY)

        assert read_all(client).startswith(b"HTTP/1.1 200")


UNREAD = b"POST /v1/nothing HTTP/1.1\r\nHost: a\r\n"


@pytest.mark.parametrize(
    ("framing", "body", "lives"),
    [
        (b"Content-Length: 9\r\n\r\n", b"x" * 9, True),
        (b"Content-Length: 90000\r\n\r\n", b"x" * 100, False),
        (b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n0\r\n\r\n", False),
    ],
)
def test_an_answer_says_whether_its_connection_goes_on(
    both: Both, framing: bytes, body: bytes, lives: bool
) -> None:
    running, _ = both
    with running.connect() as client:
        client.sendall(UNREAD + framing + body)
        head = read_until(client, b"\r\n\r\n").lower()
        assert head.startswith(b"http/1.1 404")
        assert (b"connection: keep-alive" in head, b"connection: close" in head) == (
            lives,
            not lives,
        )
        if not lives:
            read_all(client)
            return
        client.sendall(b"GET /version HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b"200 OK" in read_until(client, b'"version"')


def test_a_body_that_was_read_keeps_its_connection_whatever_its_size(both: Both) -> None:
    running, _ = both
    body = json.dumps({"model": "nobody", "x": "x" * 200_000}).encode()
    request = b"POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
    with running.connect() as client:
        for framing, sent in (
            (b"Content-Length: %d" % len(body), body),
            (b"Transfer-Encoding: chunked", b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)),
        ):
            client.sendall(request + framing + b"\r\n\r\n" + sent)
            said = read_until(client, b"}}")
            assert said.startswith(b"HTTP/1.1 404")
            assert b"connection: keep-alive" in said.lower()
