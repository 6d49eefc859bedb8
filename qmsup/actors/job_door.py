"""Where listeners' workers come in with jobs: a Unix socket that takes one HTTP request a connection.

A worker's relay engine carries the request here as it would to a model's server, so a waiting client costs no thread,
and what it sends and reads is carried as ever. Whoever comes is a process of ours: the folder is closed to others.
"""

import math
import os
import select
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from qmsup.units import Seconds

_CHUNK = 256 * 1024
_AT_A_TIME = 16
"""Chunks that one visitor sends or takes before it is others' turn."""
_BACKLOG = 512
_LONGEST_HEAD = 64 * 1024
_IN_MEMORY = 1024 * 1024
"""Bytes. What is larger is kept in a file that has no name."""
_GONE = select.POLLRDHUP | select.POLLHUP | select.POLLERR


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A request.

    Attributes:
        body: at its start.
        length: of the body, in bytes.
        request: whose grant it comes under; "" = none's.
        server: the address that the grant named.
    """

    method: str
    target: str
    content_type: str
    request: str
    server: str
    body: BinaryIO
    length: int


class GoneError(Exception):
    """Who came has left, or speaks in tongues."""


class NoRoomError(Exception):
    """A request's body can be kept nowhere."""


def open_door(path: Path) -> socket.socket:
    """The socket, in place of a former scheduler's.

    Raises:
        OSError: it cannot be made there.
    """
    path.unlink(missing_ok=True)
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        door.bind(os.fspath(path))
        path.chmod(0o600)
        door.listen(_BACKLOG)
    except OSError:
        door.close()
        raise
    return door


class Visitor:
    """One connection: one request in, one answer out. Nothing here waits."""

    __slots__ = ("_body", "_head", "_left", "_received", "_sock", "_unsent")

    def __init__(self, sock: socket.socket) -> None:
        """Nothing is read yet.

        Args:
            sock: does not block.
        """
        self._sock = sock
        self._received = bytearray()
        self._head: tuple[str, str, dict[str, str]] | None = None
        self._body: BinaryIO | None = None
        self._left = 0
        self._unsent = memoryview(b"")

    def fileno(self) -> int:
        """The descriptor to poll."""
        return self._sock.fileno()

    @property
    def events(self) -> int:
        """What to poll for now."""
        return (select.POLLOUT if self._unsent else select.POLLIN) | select.POLLRDHUP

    def receive(self) -> Visit | None:
        """Read what has come, or some of it; the request once it is whole.

        Raises:
            GoneError: it will not be.
            NoRoomError: the disk does not take it.
        """
        for _ in range(_AT_A_TIME):
            try:
                chunk = self._sock.recv(_CHUNK)
            except BlockingIOError:
                return None
            except OSError as error:
                raise GoneError from error
            if not chunk:
                raise GoneError
            if (visit := self._take(chunk)) is not None:
                return visit
        return None

    def is_gone(self) -> bool:
        """Whether who came has left, after a whole request."""
        if self._sock.fileno() < 0:  # it was sent away
            return True
        poll = select.poll()
        poll.register(self._sock, select.POLLRDHUP)
        return any(event & _GONE for _, event in poll.poll(0))

    def answer(
        self, status: int, content_type: str, body: bytes, *, retry_after: Seconds | None = None
    ) -> None:
        """Say this; `go_on` sends it."""
        again = "" if retry_after is None else f"Retry-After: {max(1, math.ceil(retry_after))}\r\n"
        head = (
            f"HTTP/1.1 {status} {_PHRASES.get(status, 'Status')}\r\n"
            f"Content-Type: {content_type or 'application/json'}\r\n{again}"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        self._unsent = memoryview(head.encode("latin-1") + body)

    def go_on(self) -> bool:
        """Send what is taken now, or some of it; True once all is out, or nobody is there to take it."""
        try:
            for _ in range(_AT_A_TIME):
                if not self._unsent:
                    break
                self._unsent = self._unsent[self._sock.send(self._unsent[:_CHUNK]) :]
        except BlockingIOError:
            return False
        except OSError:
            return True
        return not self._unsent

    def close(self) -> None:
        """Hang up. May be repeated."""
        self._sock.close()
        if self._body is not None:
            self._body.close()
            self._body = None

    def _take(self, chunk: bytes) -> Visit | None:
        if self._head is None:
            self._received += chunk
            head, end, rest = self._received.partition(b"\r\n\r\n")
            if not end:
                if len(self._received) > _LONGEST_HEAD:
                    raise GoneError
                return None
            self._begin(head.decode("latin-1"))
            chunk = bytes(rest)
            self._received.clear()
        assert self._head is not None, "begun above"
        assert self._body is not None, "begun above"
        try:
            self._body.write(chunk)
        except OSError as error:
            message = f"there is no room for the body of this request: make some in {tempfile.gettempdir()}"
            raise NoRoomError(message) from error
        self._left -= len(chunk)
        return None if self._left > 0 else self._whole(self._head, self._body)

    def _begin(self, head: str) -> None:
        first, *lines = head.split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        try:
            method, target, _ = first.split(" ")
            self._left = int(headers.get("content-length", "0"))
        except ValueError as error:
            raise GoneError from error
        self._head = (method, target, headers)
        # Closed with the visitor, or by whoever carries it on.
        self._body = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # type: ignore[assignment]  # noqa: SIM115 - a BinaryIO but for its type

    def _whole(self, head: tuple[str, str, dict[str, str]], body: BinaryIO) -> Visit:
        length = body.tell()
        body.seek(0)
        self._body = None
        method, target, headers = head
        return Visit(
            method=method,
            target=target,
            content_type=headers.get("content-type", ""),
            request=headers.get("x-qm-request-id", ""),
            server=headers.get("host", ""),
            body=body,
            length=length,
        )


def let_in(door: socket.socket) -> Visitor | None:
    """Who stands at the door; None = nobody.

    Raises:
        OSError: this process can have no descriptor more.
    """
    try:
        sock, _ = door.accept()
    except (BlockingIOError, ConnectionError):
        return None
    sock.setblocking(False)  # noqa: FBT003 - the socket's own signature
    return Visitor(sock)


_PHRASES = {200: "OK", 202: "Accepted", 404: "Not Found", 409: "Conflict", 429: "Too Many Requests"}
