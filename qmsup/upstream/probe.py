"""Asks a child once whether it is ready, without ever waiting: the caller's poll says when to look.

A connection per question, closed at once: a child that ends must not be kept by it. The status line is what counts.
"""

import errno
import os
import select
import socket
from dataclasses import dataclass
from enum import StrEnum

_MOST_BYTES = 1024 * 1024
"""Of an answer: `/props` holds the chat template, which can be long."""
_CHUNK = 64 * 1024
_LOADING = 503


class Found(StrEnum):
    """What a probe saw."""

    READY = "ready"
    LOADING = "loading"
    OTHER_STATUS = "other_status"
    """An answer that is neither the status of one that is ready nor 503."""
    REFUSED = "refused"
    """Nothing listens yet, or the connection was closed without an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The end of a probe; `body` is empty but for a probe that wanted it."""

    found: Found
    words: str
    body: bytes = b""


class Probe:
    """One question under way.

    Poll `fileno` for `events` and call `look` when it is ready, until there is an answer. A child that is stopped
    (SIGSTOP) accepts and never answers, so the caller has a time-out. Close it in any case.
    """

    __slots__ = (
        "_address",
        "_is_connected",
        "_path",
        "_received",
        "_socket",
        "_status",
        "_wants_body",
    )

    def __init__(
        self,
        host: str,
        port: int,
        path: str | None = None,
        *,
        status: int = 200,
        wants_body: bool = False,
    ) -> None:
        """Make the socket; nothing is sent before `look`.

        Args:
            host: an address, or `localhost`; a name would have to be resolved, which waits.
            port: where the child is to answer.
            path: what to GET, such as `/health`; None = ready as soon as a connection is accepted.
            status: of the answer of one that is ready.
            wants_body: read all of such an answer, not its first line only.
        """
        self._address = ("127.0.0.1" if host == "localhost" else host, port)
        self._path = path
        self._status = status
        self._wants_body = wants_body
        self._received = bytearray()
        self._is_connected = False
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)

    @property
    def events(self) -> int:
        """What to poll for now: `select.POLLOUT` while connecting, then `select.POLLIN`."""
        return select.POLLIN if self._is_connected else select.POLLOUT

    def fileno(self) -> int:
        """The descriptor to poll."""
        return self._socket.fileno()

    def close(self) -> None:
        """Give the descriptor back. May be repeated."""
        self._socket.close()

    def look(self) -> Answer | None:
        """Go on as far as is possible without waiting; None = look again when polled."""
        try:
            if not self._is_connected and not self._connect():
                return None
            if self._path is None:
                return Answer(found=Found.READY, words="a connection was accepted")
            return self._read()
        except BlockingIOError:
            return None
        except OSError as error:
            return Answer(found=Found.REFUSED, words=error.strerror or str(error))

    def _connect(self) -> bool:
        code = self._socket.connect_ex(self._address)
        if code == errno.EINPROGRESS:
            # This machine has answered by now, though the call did not wait for it: that spares a poll, or two.
            code = self._socket.connect_ex(self._address)
        if code in {errno.EINPROGRESS, errno.EALREADY}:
            return False
        if code not in {0, errno.EISCONN}:
            raise OSError(code, os.strerror(code))
        self._is_connected = True
        if self._path is not None:
            # Always fits in the buffer of a fresh socket, so it is sent at once and whole.
            self._socket.send(
                f"GET {self._path} HTTP/1.1\r\nHost: {self._address[0]}:{self._address[1]}\r\n"
                "User-Agent: qmsup\r\nAccept: */*\r\nConnection: close\r\n\r\n".encode("latin-1")
            )
        return True

    def _read(self) -> Answer | None:
        while True:
            chunk = self._socket.recv(_CHUNK)
            self._received += chunk
            answer = self._judge(is_over=not chunk or len(self._received) > _MOST_BYTES)
            if answer is not None:
                return answer

    def _judge(self, *, is_over: bool) -> Answer | None:
        line, end, _ = self._received.partition(b"\r\n")
        if not end:
            words = "the connection was closed without an answer"
            return Answer(found=Found.REFUSED, words=words) if is_over else None
        version, _, rest = line.decode("latin-1").partition(" ")
        code = rest[:3]
        words = f"GET {self._path} answered {code}"
        if not version.startswith("HTTP/") or not code.isdigit():
            return Answer(found=Found.OTHER_STATUS, words="something answered that is not HTTP")
        if int(code) == self._status:
            if self._wants_body and not is_over:
                return None
            return Answer(found=Found.READY, words=words, body=self._body())
        is_loading = int(code) == _LOADING
        return Answer(found=Found.LOADING if is_loading else Found.OTHER_STATUS, words=words)

    def _body(self) -> bytes:
        return bytes(self._received.partition(b"\r\n\r\n")[2]) if self._wants_body else b""
