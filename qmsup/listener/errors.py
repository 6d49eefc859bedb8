"""Refusals as clients read them: the OpenAI envelope, as a body, a whole HTTP answer, or one event of a stream."""

import json
import math
from http import HTTPStatus

from qmsup.errors import Code, Refusal, status_of
from qmsup.listener.cors import cors_headers
from qmsup.units import Seconds

_MAX_MESSAGE = 2000
"""Longer messages (a child's last lines) are cut in the middle: the ends say most."""

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "invalid_request_error",
    405: "invalid_request_error",
    409: "invalid_request_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    429: "rate_limit_error",
}
"""OpenAI's `type` by status; its SDKs look at the status, people at this. The rest is `server_error`."""

_MODEL_CODES = frozenset({Code.MODEL_MISSING, Code.MODEL_NOT_FOUND, Code.MODEL_NOT_ALLOWED})

_SOON, _LATER = Seconds(1.0), Seconds(30.0)
_RETRIES = {
    Code.QUEUE_FULL: _SOON,
    Code.LINE_FULL: _SOON,
    Code.WAIT_TIMEOUT: _SOON,
    Code.MODEL_UNLOADED: _SOON,
    Code.UPSTREAM_FAILED: _SOON,
    Code.SCHEDULER_UNAVAILABLE: _SOON,
    Code.MODEL_UNAVAILABLE: _SOON,
    Code.SHUTTING_DOWN: _LATER,
    Code.DRAINING: _LATER,
    Code.NO_HOST: _LATER,
    Code.INSUFFICIENT_VRAM: _LATER,
}
"""Codes that a later try may not meet again, and how much later, where nothing better is known."""

ERROR_NAME = b"event: error\n"
"""Begins an event that tells of an error, where events have names."""

Headers = tuple[tuple[str, str], ...]


def error_body(refusal: Refusal, *, param: str | None = None) -> bytes:
    """`{"error": {"message", "type", "param", "code"}}`; `param` names the offending field, if one is to blame."""
    if param is None and refusal.code in _MODEL_CODES:
        param = "model"
    error = {
        "message": _shortened(refusal.message),
        "type": _TYPES.get(status_of(refusal.code), "server_error"),
        "param": param,
        "code": refusal.code.value,
    }
    # Plain ASCII, so that whatever a client or a child wrote into the message cannot break the encoding.
    return json.dumps({"error": error}, separators=(",", ":")).encode("ascii")


def error_headers(refusal: Refusal, *, origin: str | None, request_id: str | None) -> Headers:
    """All headers of an answer that refuses, but its length and `Connection`."""
    headers = [("Content-Type", "application/json"), *cors_headers(origin)]
    headers.append(("X-Content-Type-Options", "nosniff"))
    if request_id is not None:
        headers.append(("X-QM-Request-Id", request_id))
    retry_after = refusal.retry_after or _RETRIES.get(refusal.code)
    if retry_after is not None:
        headers.append(("Retry-After", str(max(1, math.ceil(retry_after)))))
    if refusal.code is Code.INVALID_API_KEY:
        headers.append(("WWW-Authenticate", 'Bearer realm="qmsup"'))
    return tuple(headers)


def error_response(  # noqa: PLR0913 - each is a line of the head
    refusal: Refusal,
    *,
    origin: str | None,
    request_id: str | None,
    close: bool,
    head_only: bool = False,
    status: HTTPStatus | None = None,
    about: bytes = b"",
) -> bytes:
    """A complete HTTP/1.1 answer, for a connection that the relay engine owns.

    Args:
        refusal: Why.
        origin: The request's `Origin`, echoed so that a browser may show the error.
        request_id: Sent as `X-QM-Request-Id`.
        close: Whether the connection ends with this answer.
        head_only: The request was a HEAD: the headers tell of a body that is not sent.
        status: Instead of the one that goes with the code.
        about: Header lines on the request, each ended by CRLF, where more is known of it than its id.
    """
    body = error_body(refusal)
    lines = [
        f"HTTP/1.1 {status_line(refusal, status)}",
        *(
            f"{name}: {value}"
            for name, value in error_headers(refusal, origin=origin, request_id=request_id)
        ),
        f"Content-Length: {len(body)}",
        f"Connection: {'close' if close else 'keep-alive'}",
        "",
    ]
    head = "\r\n".join(lines).encode("ascii") + about + b"\r\n"
    return head if head_only else head + body


def sse_error(refusal: Refusal, *, named: bool = False) -> bytes:
    """The last event of a stream whose head is out already.

    Args:
        refusal: Why.
        named: As clients of Anthropic's want it, who pass over events without a name.
    """
    if not named:
        return b"data: " + error_body(refusal) + b"\n\n"
    # The same object, told to be an error.
    return ERROR_NAME + b'data: {"type": "error", ' + error_body(refusal)[1:] + b"\n\n"


def status_line(refusal: Refusal, status: HTTPStatus | None = None) -> str:
    """Status and reason, as WSGI wants it; `status` instead of the one that goes with the code."""
    status = status or HTTPStatus(status_of(refusal.code))
    return f"{status.value} {status.phrase}"


def _shortened(message: str) -> str:
    if len(message) <= _MAX_MESSAGE:
        return message
    half = _MAX_MESSAGE // 2
    return f"{message[:half]} ... {message[-half:]}"
