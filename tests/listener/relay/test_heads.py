import pytest

from qmsup.ids import ModelId, RequestId
from qmsup.listener.relay.framing import Head, read_head
from qmsup.listener.relay.heads import client_head, our_headers, placeholder_head


def _lines(head: bytes) -> list[bytes]:
    assert head.endswith(b"\r\n\r\n")
    return head[:-4].split(b"\r\n")


def _passed(answer: bytes, *, origin: str | None = None, chunked: bool = True) -> list[bytes]:
    head = read_head(answer, method="GET")
    assert isinstance(head, Head)
    return _lines(client_head(head, b"", origin=origin, chunked=chunked, keeps_alive=True))


def test_status_order_and_values_pass_unchanged() -> None:
    lines = _passed(b"HTTP/1.1 299 Odd One\r\nB: 1\r\na:  2 \r\nB: 3\r\nContent-Length: 0\r\n\r\n")

    assert lines == [
        b"HTTP/1.1 299 Odd One",
        b"B: 1",
        b"a:  2 ",
        b"B: 3",
        b"Content-Length: 0",
        b"Connection: keep-alive",
    ]


@pytest.mark.parametrize(
    "line",
    [
        b"Keep-Alive: timeout=5",
        b"Connection: close",
        b"Upgrade: h2c",
        b"Proxy-Connection: close",
        b"Trailer: X",
        b"X-QM-Model: forged",
        b"X-Qm-Wait-Ms: 5",
    ],
)
def test_hop_by_hop_headers_and_ours_do_not_pass(line: bytes) -> None:
    lines = _passed(b"HTTP/1.1 200 OK\r\n" + line + b"\r\nContent-Length: 0\r\n\r\n")

    assert lines == [b"HTTP/1.1 200 OK", b"Content-Length: 0", b"Connection: keep-alive"]


def test_what_connection_names_does_not_pass_either() -> None:
    lines = _passed(
        b"HTTP/1.1 200 OK\r\nConnection: close, X-Hop , content-length\r\nx-hop: 1\r\nContent-Length: 0\r\n\r\n"
    )

    assert lines == [b"HTTP/1.1 200 OK", b"Content-Length: 0", b"Connection: keep-alive"]


def test_a_client_that_gets_the_chunks_is_told_of_them() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"

    assert b"Transfer-Encoding: chunked" in _passed(answer)
    assert b"Content-Length: 3" not in _passed(answer)
    assert b"Transfer-Encoding: chunked" not in _passed(answer, chunked=False)


def test_an_event_stream_is_not_to_be_buffered() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%b\r\n"

    assert _passed(answer % b"").count(b"X-Accel-Buffering: no") == 1
    assert _passed(answer % b"X-Accel-Buffering: no\r\n").count(b"X-Accel-Buffering: no") == 1
    assert b"X-Accel-Buffering: no" not in _passed(b"HTTP/1.1 200 OK\r\n\r\n")


def test_a_browser_gets_our_cors_headers_in_place_of_the_childs() -> None:
    answer = b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: 0\r\n\r\n"

    lines = _passed(answer, origin="https://example.org")

    assert b"Access-Control-Allow-Origin: https://example.org" in lines
    assert b"Access-Control-Allow-Origin: *" not in lines
    assert b"Access-Control-Allow-Origin: *" in _passed(answer)


def test_our_headers_leave_out_what_is_not_known_yet() -> None:
    known = our_headers(RequestId("q-1"), ModelId("m"), loaded=True, wait_ms=12)
    unknown = our_headers(RequestId("q-1"), ModelId("m"), loaded=None, wait_ms=None)

    assert sorted(known.split(b"\r\n")) == [
        b"",
        b"X-QM-Host: local",
        b"X-QM-Model-Loaded: 1",
        b"X-QM-Model: m",
        b"X-QM-Request-Id: q-1",
        b"X-QM-Wait-Ms: 12",
    ]
    assert b"Loaded" not in unknown
    assert b"Wait" not in unknown


def test_a_models_name_cannot_break_a_header() -> None:
    named = our_headers(RequestId("q"), ModelId("a\r\nb: ü"), loaded=None, wait_ms=None)

    assert b"X-QM-Model: a??b: ?\r\n" in named


def test_a_placeholder_is_an_event_stream_in_chunks_where_the_client_knows_them() -> None:
    new = _lines(placeholder_head(b"", origin=None, chunked=True, keeps_alive=True))
    old = _lines(placeholder_head(b"", origin=None, chunked=False, keeps_alive=False))

    assert new[0] == b"HTTP/1.1 200 OK"
    assert b"Content-Type: text/event-stream" in new
    assert b"X-Accel-Buffering: no" in new
    assert b"Transfer-Encoding: chunked" in new
    assert b"Transfer-Encoding: chunked" not in old
    assert b"Connection: close" in old
