"""The canned answers of our own child, as bytes on the wire. Pure."""

import json

EVENT_BYTES = 200
LAST_CHUNK = b"0\r\n\r\n"
LOADING = b'{"error":{"message":"Loading model","type":"unavailable_error","code":503}}'
ANSWER = json.dumps(
    {
        "id": "chatcmpl-canned",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "canned",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": "It keeps programs running. " * 4},
            }
        ],
        "usage": {"prompt_tokens": 12, "completion_tokens": 16, "total_tokens": 28},
    }
).encode()

_EVENT_HEAD = b'data: {"t":"%020d","choices":[{"index":0,"delta":{"content":"'
_EVENT_TAIL = b'"}}]}\n\n'
_PADDING = b"x" * (EVENT_BYTES - len(_EVENT_HEAD % 0) - len(_EVENT_TAIL))
_EVENT = b"%x\r\n" % EVENT_BYTES + _EVENT_HEAD + _PADDING + _EVENT_TAIL + b"\r\n"
_STREAM = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    b"Connection: %s\r\nTransfer-Encoding: chunked\r\n\r\n"
)
_WHOLE = (
    b"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n"
    b"Connection: %s\r\nContent-Length: %d\r\n\r\n%s"
)


def event(now_ns: int) -> bytes:
    """One event of `EVENT_BYTES` as one chunk, with the time of its making in it."""
    return _EVENT % now_ns


def stream_head(*, closes: bool) -> bytes:
    """The head of an event stream."""
    return _STREAM % _kept(closes=closes)


def whole(body: bytes, *, status: int = 200, closes: bool) -> bytes:
    """A complete JSON answer."""
    reason = b"OK" if status == 200 else b"Service Unavailable"
    return _WHOLE % (status, reason, _kept(closes=closes), len(body), body)


def _kept(*, closes: bool) -> bytes:
    return b"close" if closes else b"keep-alive"
