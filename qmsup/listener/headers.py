"""Request headers: what goes on to the child, and what the client tells qmsup with them."""

import re

from qmsup.errors import Code, Refusal, RequestError
from qmsup.listener.body import Environ
from qmsup.units import Seconds, seconds_from_ms

_DROPPED = frozenset(
    {
        # of this connection only
        "CONNECTION",
        "KEEP_ALIVE",
        "PROXY_AUTHENTICATE",
        "PROXY_AUTHORIZATION",
        "PROXY_CONNECTION",
        "TE",
        "TRAILER",
        "TRANSFER_ENCODING",
        "UPGRADE",
        "EXPECT",
        # written anew
        "HOST",
        "CONTENT_LENGTH",
        "CONTENT_TYPE",
        "CONTENT_ENCODING",
        # the client's key is for us
        "AUTHORIZATION",
        "X_API_KEY",
        # a child would keep the generation alive after its client left
        "X_CONVERSATION_ID",
    }
)
_OURS = "X_QM_"
CLOSE = b"Connection: close\r\n"
"""The last line of every head, see RelayOrder.head."""
_MAX_KNOWN = 512
_MAX_MS = 10**12
_MAX_DIGITS = 15
_USUAL_CONNECTIONS = frozenset({"", "close", "keep-alive", "Keep-Alive", "Close"})
_TARGET = re.compile(r"[\x21-\x7e\x80-\xff]*")

_known: dict[str, str | None] = {"CONTENT_TYPE": "Content-Type: "}
"""Environ key to the start of its header line; None = not passed on. Filled as names are seen, up to a bound."""


def upstream_head(environ: Environ, target: str, length: int | None) -> bytes:
    """The head of the request to the child: no `Host` and no closing blank line yet (see RelayOrder.head).

    Args:
        environ: The client's request.
        target: Path and query.
        length: Of the decoded body, in bytes; None = there is none, nor could there be.

    Raises:
        RequestError: Something in it could be read as another header line.
    """
    unwanted = _named_by_connection(environ)
    lines = [f"{environ['REQUEST_METHOD']} {target} HTTP/1.1"]
    for key, value in environ.items():
        start = _known[key] if key in _known else _line_start(key)
        if start is not None and key not in unwanted and (value or key != "CONTENT_TYPE"):
            lines.append(start + value)
    if length is not None:
        lines.append(f"Content-Length: {length}")
    lines.append(CLOSE.decode())
    text = "\r\n".join(lines)
    # The server in front has refused such requests already; this is where it would hurt.
    breaks = len(lines)
    if text.count("\n") != breaks or text.count("\r") != breaks or "\0" in text:
        raise _bad("a request header holds a line break")
    if _TARGET.fullmatch(target) is None:
        raise _bad("the request's path or query holds a space or a control character")
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        raise _bad("a request header holds a character outside of Latin-1") from None


def wish(environ: Environ, key: str) -> Seconds | None:
    """A time in ms from a header, as seconds: 0 = off; None when absent or empty.

    Raises:
        RequestError: It is no whole number: to go by another time than the client meant helps nobody.
    """
    text = environ.get(key)
    if not text or not (text := text.strip()):
        return None
    if not (text.isascii() and text.isdigit()):
        name = key.removeprefix("HTTP_").replace("_", "-").title().replace("X-Qm", "X-QM")
        raise _bad(
            f"the header {name} takes a whole number of milliseconds, such as 1500; 0 = none"
        )
    return seconds_from_ms(_MAX_MS if len(text) > _MAX_DIGITS else min(int(text), _MAX_MS))


def _line_start(key: str) -> str | None:
    name = key.removeprefix("HTTP_")
    passed = name != key and name not in _DROPPED and not name.startswith(_OURS)
    start = f"{name.replace('_', '-').title()}: " if passed else None
    if len(_known) < _MAX_KNOWN:
        _known[key] = start
    return start


def _named_by_connection(environ: Environ) -> frozenset[str]:
    """Headers that `Connection` says are of this connection only."""
    connection = environ.get("HTTP_CONNECTION", "")
    if connection in _USUAL_CONNECTIONS:
        return frozenset()
    return frozenset(
        "HTTP_" + name.strip().upper().replace("-", "_") for name in connection.split(",")
    )


def _bad(message: str) -> RequestError:
    return RequestError(Refusal(code=Code.BAD_REQUEST, message=message))
