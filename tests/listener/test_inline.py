import json
import socket
from collections.abc import Iterator

import pytest
from gunicorn.config import Config
from gunicorn.workers.gthread import TConn

from qmsup.listener.inline import Inline, Relayed, inline_for
from qmsup.listener.relay.order import RelayOrder
from tests.support.gunicorns import post
from tests.support.listener_app import app_of

BODY = json.dumps({"model": "chat", "messages": []}).encode()
PLAIN = post({"model": "chat", "messages": []})


def request(
    line: bytes = b"POST /v1/chat/completions HTTP/1.1",
    headers: bytes = b"",
    body: bytes = BODY,
) -> bytes:
    return b"%b\r\nHost: a\r\n%bContent-Length: %d\r\n\r\n%b" % (line, headers, len(body), body)


@pytest.fixture
def conn() -> Iterator[TConn]:
    near, far = socket.socketpair()
    with near, far:
        yield TConn(Config(), near, ("127.0.0.1", 5), ("127.0.0.1", 8080))


@pytest.fixture
def inline() -> Inline:
    pytest.importorskip("gunicorn_h1c")
    made = inline_for(app_of(), Config())
    assert made is not None
    return made


def test_a_whole_small_request_becomes_an_order(inline: Inline, conn: TConn) -> None:
    relayed = inline.order_for(request(b"POST /v1/chat/completions?a=%20b HTTP/1.1"), conn)

    assert isinstance(relayed, Relayed)
    assert isinstance(relayed.order, RelayOrder)
    assert relayed.order.model == "chat"
    assert relayed.order.body == BODY
    assert relayed.order.head.startswith(b"POST /v1/chat/completions?a=%20b HTTP/1.1\r\n")
    assert (relayed.is_http11, relayed.keeps_alive) == (True, True)


@pytest.mark.parametrize(
    ("line", "headers", "is_http11", "keeps_alive"),
    [
        (b"HTTP/1.1", b"", True, True),
        (b"HTTP/1.1", b"Connection: close\r\n", True, False),
        (b"HTTP/1.1", b"Connection: x, Close\r\n", True, False),
        (b"HTTP/1.1", b"Connection: Keep-Alive\r\n", True, True),
        (b"HTTP/1.0", b"", False, False),
        (b"HTTP/1.0", b"Connection: keep-alive\r\n", False, True),
    ],
)
def test_the_clients_connection_is_understood(
    inline: Inline, conn: TConn, *, line: bytes, headers: bytes, is_http11: bool, keeps_alive: bool
) -> None:
    relayed = inline.order_for(request(b"POST /completion " + line, headers), conn)

    assert relayed is not None
    assert (relayed.is_http11, relayed.keeps_alive) == (is_http11, keeps_alive)


LEFT = {
    "nothing whole": PLAIN[:-1],
    "half a head": PLAIN[:40],
    "something behind it": PLAIN + b"GET / HTTP/1.1\r\n",
    "another method": PLAIN.replace(b"POST", b"GET", 1),
    "a page": PLAIN.replace(b"/v1/chat/completions", b"/api/models/unload"),
    "an escaped path": PLAIN.replace(b"/v1/chat/completions", b"/v1/chat%2Fcompletions"),
    "a whole address": PLAIN.replace(b"POST /v1", b"POST http://a/v1"),
    "a fragment": PLAIN.replace(b"completions HTTP", b"completions?a=1#b HTTP"),
    "foreign bytes in the query": PLAIN.replace(b"completions HTTP", b"completions?a=\xff HTTP"),
    "chunks": b"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "no length": b"POST /v1/completions HTTP/1.1\r\nHost: a\r\n\r\n",
    "a wish to continue": request(headers=b"Expect: 100-continue\r\n"),
    "what is more than it looks": request(headers=b"Content-Encoding: identity\r\n"),
    "two lengths": request(headers=b"Content-Length: 5\r\n"),
    "two hosts": request(headers=b"Host: b\r\n"),
    "a folded line": request(headers=b"A: b\r\n c\r\n"),
    "a bare line feed": request(headers=b"A: b\nC: d\r\n"),
    "a space before the colon": request(headers=b"A : b\r\n"),
    "a control character": request(headers=b"A: \x01\r\n"),
    "too many headers": request(headers=b"".join(b"A%d: b\r\n" % n for n in range(200))),
    "a long header": request(headers=b"A: " + b"b" * 10_000 + b"\r\n"),
    "no HTTP": b"\x16\x03\x01",
    "what the app refuses": post({"model": "nope"}),
}


@pytest.mark.parametrize("case", LEFT)
def test_everything_else_is_left_to_gunicorn(inline: Inline, conn: TConn, case: str) -> None:
    assert inline.order_for(LEFT[case], conn) is None


def test_there_is_none_where_the_settings_ask_for_more() -> None:
    for name, value in (("http_parser", "python"), ("proxy_protocol", "v1")):
        config = Config()
        config.set(name, value)

        assert inline_for(app_of(), config) is None
