"""One request to a model's server and its whole answer, without ever waiting: the caller's poll says when to look.

A connection per request, as everywhere: these servers close kept-alive ones when they like.
"""

import errno
import io
import os
import re
import select
import socket
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import BinaryIO, cast

_CHUNK = 256 * 1024
_MOST = 1024 * 1024 * 1024
"""Bytes of an answer: a video in base64 may be large, but not like this."""
_END_OF_HEAD = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,15})[ \t]*\r\n", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A request.

    Attributes:
        upstream: `host:port`; an address, or `localhost`: a name would have to be resolved, which waits.
        target: path and query.
        body: the bytes, or a file at its start; None = there is none.
        length: of the body, in bytes.
    """

    upstream: str
    method: str
    target: str
    body: bytes | BinaryIO | None = None
    length: int = 0
    content_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer that came whole."""

    status: int
    body: bytes
    content_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """There was none, or not all of it; the words say why."""

    because: str


class Call:
    """One request under way.

    Poll `fileno` for `events` and call `look` when it is ready, until there is a result. Close it in any case.
    """

    __slots__ = (
        "_address",
        "_file",
        "_has_head",
        "_is_connected",
        "_length",
        "_received",
        "_socket",
        "_unsent",
    )

    def __init__(self, wanted: Wanted) -> None:
        """Make the socket; nothing is sent before `look`.

        Raises:
            OSError: there is no descriptor left for it.
        """
        host, _, port = wanted.upstream.rpartition(":")
        host = host.strip("[]")
        self._address = ("127.0.0.1" if host == "localhost" else host, int(port))
        self._unsent = memoryview(_head(wanted))
        self._file = io.BytesIO(wanted.body) if isinstance(wanted.body, bytes) else wanted.body
        self._received = bytearray()
        self._has_head = False
        self._length: int | None = None
        self._is_connected = False
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)

    @property
    def events(self) -> int:
        """What to poll for now."""
        is_sending = not self._is_connected or self._unsent or self._file is not None
        return select.POLLIN | select.POLLOUT if is_sending else select.POLLIN

    def fileno(self) -> int:
        """The descriptor to poll."""
        return self._socket.fileno()

    def close(self) -> None:
        """Give the descriptor back, and the body's file. May be repeated."""
        self._socket.close()
        if self._file is not None:
            self._file.close()
            self._file = None

    def look(self) -> Answered | Unanswered | None:
        """Go on as far as is possible without waiting; None = look again when polled."""
        try:
            if not self._is_connected and not self._connect():
                return None
            self._send()
            return self._receive()
        except BlockingIOError:
            return None
        except OSError as error:
            return Unanswered(because=f"{self._where}: {error.strerror or error}")

    @property
    def _where(self) -> str:
        return f"{self._address[0]}:{self._address[1]}"

    def _connect(self) -> bool:
        code = self._socket.connect_ex(self._address)
        if code in {errno.EINPROGRESS, errno.EALREADY}:
            return False
        if code not in {0, errno.EISCONN}:
            raise OSError(code, os.strerror(code))
        self._is_connected = True
        return True

    def _send(self) -> None:
        """Send what the socket takes. A server that wants no more of it may have answered all the same."""
        try:
            while self._unsent or self._read_on():
                taken = self._socket.send(self._unsent)
                self._unsent = self._unsent[taken:]
        except BlockingIOError:
            pass
        except (BrokenPipeError, ConnectionResetError):
            self._unsent = memoryview(b"")
            self._drop_file()

    def _read_on(self) -> bool:
        if self._file is None:
            return False
        self._unsent = memoryview(self._file.read(_CHUNK))
        if not self._unsent:
            self._drop_file()
        return bool(self._unsent)

    def _drop_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _receive(self) -> Answered | Unanswered:
        while True:
            chunk = self._socket.recv(_CHUNK)
            self._received += chunk
            if not chunk or self._is_whole():
                return self._read()
            if len(self._received) > _MOST:
                return Unanswered(because=f"{self._where} answered with more than {_MOST} bytes")

    def _is_whole(self) -> bool:
        """Whether all has come that its head announces: some servers do not close then."""
        if not self._has_head:
            end = self._received.find(_END_OF_HEAD)
            if end < 0:
                return False
            self._has_head = True
            length = _LENGTH.search(self._received, 0, end + 2)
            if length is not None:
                self._length = end + len(_END_OF_HEAD) + int(length[1])
        return self._length is not None and len(self._received) >= self._length

    def _read(self) -> Answered | Unanswered:
        if _END_OF_HEAD not in self._received:
            return Unanswered(because=f"{self._where} hung up without an answer")
        # http.client reads from a socket's file, and nothing else of a socket.
        response = HTTPResponse(cast("socket.socket", _Said(bytes(self._received))))
        try:
            response.begin()
            body = response.read()
        except (HTTPException, ValueError) as error:
            return Unanswered(because=f"{self._where} broke off its answer ({error!r:.100})")
        return Answered(
            status=response.status,
            body=body,
            content_type=response.headers.get("Content-Type", ""),
        )


class _Said:
    """What was received, as http.client wants it."""

    def __init__(self, received: bytes) -> None:
        self._received = received

    def makefile(self, _mode: str) -> BinaryIO:
        """A file of it."""
        return io.BytesIO(self._received)


def _head(wanted: Wanted) -> bytes:
    lines = [
        f"{wanted.method} {wanted.target} HTTP/1.1",
        f"Host: {wanted.upstream}",
        "User-Agent: qmsup",
        "Accept: */*",
        "Connection: close",
    ]
    if wanted.content_type:
        lines.append(f"Content-Type: {wanted.content_type}")
    if wanted.method == "POST":
        lines.append(f"Content-Length: {wanted.length}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
