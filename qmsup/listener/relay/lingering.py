"""Closing a client's connection without losing the end of the answer, and without waiting for the client.

A close with unread bytes in the buffer would reset the connection and throw away what the client has not read yet.
So: our side is shut down, what still comes is read and dropped, and the socket is closed at the client's own end,
or when the time is up.
"""

import contextlib
import select
import socket
import struct
from collections.abc import Callable

from qmsup.listener.relay.loop import Loop
from qmsup.units import Seconds

LINGER = Seconds(2.0)
_MAX_DRAINED = 4 * 1024 * 1024
_READ = 64 * 1024
_RESET = struct.pack("ii", 1, 0)


def reset_on_close(sock: socket.socket) -> None:
    """Have a connection broken off when it is closed, so that nobody takes what was sent for the whole."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


def part(loop: Loop, sock: socket.socket, on_closed: Callable[[], None], *, is_whole: bool) -> None:
    """Close a client's connection after its answer: in good order, or so that it sees that the answer is not whole."""
    if is_whole:
        Lingering(loop, sock, on_closed).start()
        return
    reset_on_close(sock)
    loop.discard(sock.fileno(), sock)
    on_closed()


class Lingering:
    """One connection on its way out."""

    __slots__ = ("_drained", "_fd", "_is_over", "_loop", "_on_closed", "_sock")

    def __init__(self, loop: Loop, sock: socket.socket, on_closed: Callable[[], None]) -> None:
        self._loop = loop
        self._sock = sock
        self._fd = sock.fileno()
        self._on_closed = on_closed
        self._drained = 0
        self._is_over = False

    def start(self, longest: Seconds = LINGER) -> None:
        """Shut our side down and wait for the client's, this long at most."""
        try:
            self._sock.setblocking(False)  # noqa: FBT003 - the socket's own signature
            self._sock.shutdown(socket.SHUT_WR)
        except OSError:
            self.give_up()
            return
        self._loop.watch(self._fd, select.EPOLLIN | select.EPOLLRDHUP, self._on_event)
        self._loop.after(longest, self.give_up)

    def _on_event(self, _event: int) -> None:
        try:
            data = self._sock.recv(_READ)
        except BlockingIOError:
            return
        except OSError:  # its machine may be gone
            data = b""
        self._drained += len(data)
        if not data or self._drained > _MAX_DRAINED:
            self.give_up()

    def give_up(self) -> None:
        """Close now."""
        if self._is_over:
            return
        self._is_over = True
        self._loop.discard(self._fd, self._sock)
        self._on_closed()
