"""A request's body off the wire: bounded, decoded, in memory when small and in an unnamed file when large."""

import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

from gunicorn.http.errors import ParseException

from qmsup.errors import Code, Refusal, RequestError
from qmsup.listener.decoding import decoded
from qmsup.listener.spool import SPOOL_ABOVE, Spool

Environ = Mapping[str, Any]
"""A WSGI environ: what is under a key depends on the key."""

Buffer = bytes | mmap.mmap
"""Something to parse: a small body, or a large one's file."""

_STEP = 256 * 1024
_MIB = 1024 * 1024
_FIRST_LOOK = 4 * 1024
_LONGEST_LOOK = _MIB


class Input(Protocol):
    """`wsgi.input`."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes; b"" at the end."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What a client sent, decoded.

    Attributes:
        content: the bytes, or an open file at its start that holds them.
        length: in bytes.
    """

    content: bytes | BinaryIO
    length: int

    def buffer(self) -> Buffer:
        """The whole of it, to parse. A file is mapped, not read."""
        if isinstance(self.content, bytes):
            return self.content
        return mmap.mmap(self.content.fileno(), 0, access=mmap.ACCESS_READ)

    def close(self) -> None:
        """Give a file back that will not be used."""
        if not isinstance(self.content, bytes):
            self.content.close()


def find_in(buffer: Buffer, wanted: bytes, start: int = 0) -> int:
    """Where bytes stand, from `start` on; -1 = nowhere.

    A large body is looked through in steps: the loop's thread, and all its streams, would wait for a single one.
    """
    if isinstance(buffer, bytes):
        return buffer.find(wanted, start)
    step = _FIRST_LOOK
    while start < len(buffer):
        found = buffer[start : start + step + len(wanted) - 1].find(wanted)
        if found >= 0:
            return start + found
        start += step
        step = min(step * 4, _LONGEST_LOOK)
    return -1


def read_body(environ: Environ, max_body: int) -> Body:
    """Read the request's body, all of it.

    Args:
        environ: The request; its `wsgi.input` is read.
        max_body: In bytes, before and after decoding.

    Raises:
        RequestError: It is too large (nothing is read when its length says so), in an encoding that is not
            understood, broken, or ends early because the client went away; or there is no room for it.
    """
    length = _declared_length(environ)
    coding = environ.get("HTTP_CONTENT_ENCODING")
    _check_length(length or 0, max_body)
    if not coding and length is not None and length <= SPOOL_ABOVE:
        content = _read(environ["wsgi.input"], length) if length else b""
        if len(content) == length:
            return Body(content=content, length=length)
        return _collected(_rest(content, environ["wsgi.input"], length), max_body)
    pieces = _pieces(environ["wsgi.input"], length)
    return _collected(decoded(pieces, coding) if coding else pieces, max_body)


def _declared_length(environ: Environ) -> int | None:
    """The length the client declared; None for a chunked body, whose end the server finds."""
    declared = environ.get("CONTENT_LENGTH")
    if declared:
        if not (declared.isascii() and declared.isdigit()) or len(declared) > len(str(2**63)):
            raise _bad("the Content-Length header is no number")
        return int(declared)
    return None if environ.get("HTTP_TRANSFER_ENCODING") else 0


def _rest(start: bytes, source: Input, length: int) -> Iterator[bytes]:
    yield start
    yield from _pieces(source, length - len(start), of=length)


def _pieces(source: Input, length: int | None, of: int | None = None) -> Iterator[bytes]:
    left = length
    while left is None or left > 0:
        piece = _read(source, _STEP if left is None else min(_STEP, left))
        if not piece:
            break
        if left is not None:
            left -= len(piece)
        yield piece
    if left:
        total = of or length or 0
        raise _bad(f"the request body ended after {total - left} of {total} bytes")


def _read(source: Input, size: int) -> bytes:
    try:
        return source.read(size)
    except (ParseException, OSError) as error:  # broken chunks, or a connection that broke
        raise _bad("the request body broke off or is badly chunked") from error


def _collected(pieces: Iterator[bytes], max_body: int) -> Body:
    spool = Spool()
    try:
        for piece in pieces:
            _check_length(spool.length + len(piece), max_body)
            spool.add(piece)
        return Body(content=spool.content(), length=spool.length)
    except BaseException:
        spool.close()
        raise


def _bad(message: str) -> RequestError:
    return RequestError(Refusal(code=Code.BAD_REQUEST, message=message))


def _check_length(length: int, max_body: int) -> None:
    if length > max_body:
        raise RequestError(
            Refusal(
                code=Code.BODY_TOO_LARGE,
                message=f"the request body is larger than {max_body / _MIB:g} MiB (maxBodyMB)",
            )
        )
