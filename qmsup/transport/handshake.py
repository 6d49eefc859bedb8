"""Whether the other side of a secured connection takes our key, and whether it is the one that we trust."""

import secrets
import time
from enum import StrEnum

import zmq
from zmq.utils.monitor import recv_monitor_message

from qmsup.transport import context
from qmsup.units import Seconds

_EVENTS = (
    zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_DISCONNECTED
    | zmq.EVENT_CONNECT_RETRIED
)
_BELIEVED = 3
"""Connections in a row that end before they are secured: one may be a scheduler that just ends."""
_GIVEN_UP = Seconds(0.5)
"""ZeroMQ tries again within milliseconds, but not with who speaks something else."""


class Stranger(StrEnum):
    """Who does not know whom."""

    WE = "we"
    """Our key is not among those that the other side admits."""
    THEY = "they"
    """The other side has not the key that we trust, or speaks something else."""


class HandshakeWatch:
    """Watches one socket. For the socket's thread, from before it is connected until before it is closed."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._socket = socket
        address = f"inproc://handshakes-{secrets.token_hex(8)}"
        socket.monitor(address, _EVENTS)
        self._events = context.current().socket(zmq.PAIR)
        # ZeroMQ would wait for room, all sockets of the process with it, while nobody looks.
        self._events.setsockopt(zmq.RCVHWM, 0)
        self._events.connect(address)
        self._is_secured = False
        self._is_refused = False
        self._broken = 0
        self._broken_at: float | None = None

    def stranger(self) -> Stranger | None:
        """Who was one in the last attempts to connect; None = nobody, as far as can be told by now."""
        while context.is_readable(self._events):
            self._take(recv_monitor_message(self._events)["event"])
        if self._is_refused:
            return Stranger.WE
        is_over = self._broken_at is not None and time.monotonic() - self._broken_at > _GIVEN_UP
        return Stranger.THEY if is_over or self._broken >= _BELIEVED else None

    def close(self) -> None:
        """Watch no more."""
        self._socket.disable_monitor()
        self._events.close(linger=0)

    def _take(self, event: int) -> None:
        match event:
            case zmq.EVENT_HANDSHAKE_FAILED_AUTH:
                self._is_refused = True
            case zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self._is_secured, self._is_refused, self._broken = True, False, 0
            case zmq.EVENT_CONNECT_RETRIED:
                self._broken_at = None
            case _ if self._is_secured:
                self._is_secured = False  # a scheduler that has ended
            case _:
                self._broken += 1
                self._broken_at = time.monotonic()
