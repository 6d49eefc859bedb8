"""Heads of answers as a client of ours gets them: an upstream's with our own headers, and the placeholder's."""

from functools import lru_cache

from qmsup.ids import ModelId, RequestId
from qmsup.listener.cors import cors_headers
from qmsup.listener.relay.framing import Chunked, Head, HeadLines, is_short, read_lines

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_OURS = frozenset(
    {
        b"x-qm-model",
        b"x-qm-model-loaded",
        b"x-qm-wait-ms",
        b"x-qm-request-id",
        b"x-qm-host",
    }
)
_DROPPED = _HOP_BY_HOP | _OURS
_CORS = b"access-control-"
SWITCH = b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
"""Asks for a tunnel, and grants it."""


def our_headers(
    request: RequestId,
    model: ModelId,
    *,
    loaded: bool | None,
    wait_ms: int | None,
    host: str | None = "local",
) -> bytes:
    """The `X-QM-*` lines; None leaves a header out, since it is not known, or not yet."""
    lines = _named(model, host) + b"X-QM-Request-Id: %s\r\n" % request.encode()
    if loaded is not None:
        lines += b"X-QM-Model-Loaded: %d\r\n" % loaded
    if wait_ms is not None:
        lines += b"X-QM-Wait-Ms: %d\r\n" % wait_ms
    return lines


@lru_cache(maxsize=1024)
def _named(model: ModelId, host: str | None) -> bytes:
    # A model's name is the operator's; a character that no header may hold is shown as a question mark.
    name = "".join(c if c.isascii() and c.isprintable() else "?" for c in model)
    where = f"X-QM-Host: {host}\r\n" if host else ""
    return f"X-QM-Model: {name}\r\n{where}".encode()


@lru_cache(maxsize=256)
def _cors(origin: str | None) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in cors_headers(origin)).encode()


def client_head(
    head: Head, ours: bytes, *, origin: str | None, chunked: bool, keeps_alive: bool
) -> bytes:
    """An upstream's head for the client: status, order and values as they came, but for hop-by-hop headers.

    Args:
        head: the upstream's.
        ours: what `our_headers` made.
        origin: the client's; with one, CORS headers are ours and not the upstream's.
        chunked: the client gets the body's chunks as they came, so it is told of them.
        keeps_alive: the client's connection can carry another request afterwards.
    """
    passed = _passed_on if is_short(head.text) else _pass_on
    is_chunked = type(head.framing) is Chunked
    lines = passed(
        head.text,
        with_cors=origin is None,
        is_chunked=is_chunked,
        chunked=chunked,
        keeps_alive=keeps_alive,
    )
    return lines + ours + (_cors(origin) if origin else b"") + b"\r\n"


def switching_head(head: Head, ours: bytes) -> bytes:
    """The head that makes the client's connection a tunnel (101)."""
    lines = [b"HTTP/1.1 %d %s" % (head.lines.status, head.lines.reason)]
    lines += [line for name, line in head.lines.fields if name not in _DROPPED]
    return b"\r\n".join(lines) + b"\r\n" + SWITCH + ours + b"\r\n"


def interim_heads(interim: list[HeadLines]) -> bytes:
    """Interim answers of an upstream (such as 103) for the client, without what is of the upstream's connection."""
    said = b""
    for head in interim:
        dropped = _DROPPED | _also_hop_by_hop(head)
        lines = [b"HTTP/1.1 %d %s" % (head.status, head.reason)]
        lines += [line for name, line in head.fields if name not in dropped]
        said += b"\r\n".join(lines) + b"\r\n\r\n"
    return said


def _pass_on(
    text: bytes, *, with_cors: bool, is_chunked: bool, chunked: bool, keeps_alive: bool
) -> bytes:
    """What a client gets of a head, for all clients alike."""
    head = read_lines(text)
    dropped = _DROPPED | _also_hop_by_hop(head)
    lines = [b"HTTP/1.1 %d %s" % (head.status, head.reason)]
    for name, line in head.fields:
        if name in dropped or (not with_cors and name.startswith(_CORS)):
            continue
        if is_chunked and name == b"content-length":
            continue  # the chunks win, and a client that saw both would have to mistrust us
        lines.append(line)
    if is_chunked and chunked:
        lines.append(b"Transfer-Encoding: chunked")
    if head.is_event_stream and not any(name == b"x-accel-buffering" for name, _ in head.fields):
        lines.append(b"X-Accel-Buffering: no")
    lines.append(b"Connection: keep-alive" if keeps_alive else b"Connection: close")
    return b"\r\n".join(lines) + b"\r\n"


_passed_on = lru_cache(maxsize=512)(_pass_on)


def _also_hop_by_hop(head: HeadLines) -> frozenset[bytes]:
    """The headers that the upstream's own `Connection` names."""
    named: frozenset[bytes] = frozenset()
    for name, line in head.fields:
        if name == b"connection":
            tokens = line.partition(b":")[2].lower().split(b",")
            named |= {token.strip() for token in tokens}
    # It cannot take away what the message means by naming it.
    return named - {b"close", b"keep-alive", b"content-type", b"content-length"}


def placeholder_head(ours: bytes, *, origin: str | None, chunked: bool, keeps_alive: bool) -> bytes:
    """The head of an event stream that starts before its upstream is there."""
    return b"".join(
        (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n",
            b"X-Accel-Buffering: no\r\n",
            b"Transfer-Encoding: chunked\r\n" if chunked else b"",
            b"Connection: keep-alive\r\n" if keeps_alive else b"Connection: close\r\n",
            ours,
            _cors(origin),
            b"\r\n",
        )
    )
