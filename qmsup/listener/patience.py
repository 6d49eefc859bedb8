"""How long a thread waits for a client: it has others to serve."""

import socket
import struct
import time

from gunicorn.http.unreader import SocketUnreader
from typing_extensions import override

from qmsup.units import Seconds

_LONGEST = Seconds(60.0)
_SLOWEST_RATE = 4096
"""Bytes a second that a request has to come with, but for its first minute."""
_STALLED = struct.pack("ll", 60, 0)
"""Seconds and microseconds that a thread waits for the next bytes of a request, or to be rid of an answer."""
_INHERITED = (
    (socket.SOL_SOCKET, socket.SO_RCVTIMEO, _STALLED),
    (socket.SOL_SOCKET, socket.SO_SNDTIMEO, _STALLED),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
)
"""Accepted sockets have these from the listening one: a client whose machine is gone is noticed within a minute."""


class ImpatientUnreader(SocketUnreader):
    """Takes a client that stalls or dawdles in the middle of a request for one that left, so that it frees its thread.

    Attributes:
        has_given_up: this happened. What still comes is the rest of an old request, not a new one.
    """

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self.has_given_up = False
        self.begin()

    def begin(self) -> None:
        """A request is read from now on."""
        self._until = time.monotonic() + _LONGEST

    @override
    def chunk(self, size_hint: int | None = None) -> bytes:
        if self.has_given_up:
            return b""
        try:
            data: bytes = super().chunk(size_hint)  # type: ignore[call-arg]  # the stubs are of an older one
        except OSError:  # it broke, or since the socket blocks: its receive timeout is over
            self.has_given_up = True
            return b""
        self._until += len(data) / _SLOWEST_RATE
        self.has_given_up = time.monotonic() > self._until
        return b"" if self.has_given_up else data


def set_up(listener: socket.socket) -> None:
    """Give a listening socket what accepted ones are to have."""
    if listener.family == socket.AF_UNIX:
        return
    for level, option, value in _INHERITED:
        listener.setsockopt(level, option, value)
