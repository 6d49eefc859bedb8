"""What one client is sent: at once where it reads, and else as fast as it does. No thread waits for it."""

import select
import socket

from qmsup.listener.relay.loop import Loop
from qmsup.listener.relay.tunnel import STALLED_AFTER

_OUT, _RDHUP = select.EPOLLOUT, select.EPOLLRDHUP


class Outgoing:
    """See the module. The socket does not block, and is watched by its owner.

    Attributes:
        rest: what the client has not taken yet.
        sent: bytes that it has.
    """

    __slots__ = ("_fd", "_loop", "_sock", "_stands_since", "rest", "sent")

    def __init__(self, loop: Loop, sock: socket.socket) -> None:
        """Nothing is to be sent."""
        self._loop = loop
        self._sock = sock
        self._fd = sock.fileno()
        self._stands_since = 0.0
        self.rest = b""
        self.sent = 0

    def send(self, data: bytes) -> None:
        """Send it, behind what is there; the owner hears of it when a rest can go on.

        Raises:
            OSError: the client is gone.
        """
        if self.rest:
            self.rest += data
            return
        try:
            taken = self._sock.send(data)
        except BlockingIOError:
            taken = 0
        self.sent += taken
        if taken < len(data):
            self.rest = data[taken:]
            self._stands_since = self._loop.now
            self._loop.change(self._fd, _OUT | _RDHUP)

    def go_on(self) -> bool:
        """Send what the client takes now of the rest; whether that was all.

        Raises:
            OSError: the client is gone.
        """
        try:
            taken = self._sock.send(self.rest)
        except BlockingIOError:
            return False
        self.sent += taken
        self._stands_since = self._loop.now
        self.rest = self.rest[taken:]
        return not self.rest

    def is_stalled(self, now: float) -> bool:
        """Whether it has taken nothing of the rest for long."""
        return bool(self.rest) and now - self._stands_since > STALLED_AFTER
