"""A worker's or control client's end: one DEALER socket to the scheduler."""

import contextlib
from collections.abc import Callable, Sequence

import zmq

from qmsup.transport import context
from qmsup.transport.handshake import HandshakeWatch, Stranger
from qmsup.units import Seconds, ms_from_seconds

_RECONNECT = Seconds(0.01)
"""Between attempts to reach an absent scheduler: one refused connect of a local socket costs microseconds."""
_TOGETHER = 1000
"""Messages in one multipart: the scheduler reads no more than some thousands of it."""
_RECONNECT_AFAR = Seconds(0.1)
_LONGEST_PAUSE = Seconds(2.0)
"""The same over a network: from one to the other, doubling."""


class DealerSocket:
    """Sends to the scheduler and receives from it, across its restarts. For one thread, the one that made it.

    Sending never blocks: while there is no scheduler, messages queue, and are delivered to the next one. The
    descriptor is edge-triggered and tells of changes only; any call here may swallow one. So `receive` after
    each wake and after each send, until it returns nothing.
    """

    def __init__(
        self,
        endpoint: str,
        identity: bytes,
        *,
        secure: Callable[[zmq.Socket[bytes]], None] | None = None,
    ) -> None:
        """Connect, whether or not anyone is there yet.

        Args:
            endpoint: where the scheduler binds, or will.
            identity: unique over all peers, 1 to 255 bytes, the first not zero.
            secure: sets up keys; None = there are none.

        Raises:
            OSError: the address is no address, or there is no descriptor left.
        """
        self._socket = context.new_socket(zmq.DEALER, endpoint)
        self._socket.setsockopt(zmq.ROUTING_ID, identity)
        self._socket.setsockopt(zmq.LINGER, ms_from_seconds(context.LINGER))
        self._socket.setsockopt(zmq.RCVHWM, 0)
        self._socket.setsockopt(zmq.SNDHWM, 0)
        self._socket.setsockopt(zmq.RECONNECT_IVL, ms_from_seconds(_RECONNECT))
        self._watch: HandshakeWatch | None = None
        try:
            if secure is not None:
                secure(self._socket)
                self._watch = HandshakeWatch(self._socket)
                self._socket.setsockopt(zmq.RECONNECT_IVL, ms_from_seconds(_RECONNECT_AFAR))
                self._socket.setsockopt(zmq.RECONNECT_IVL_MAX, ms_from_seconds(_LONGEST_PAUSE))
            self._socket.connect(endpoint)
        except zmq.ZMQError as e:
            self.close()
            raise context.os_error(e, endpoint) from e

    def fileno(self) -> int:
        """The descriptor to poll; see the class on how."""
        return int(self._socket.getsockopt(zmq.FD))

    def receive(self) -> list[bytes]:
        """Every frame that has come, in order, without waiting."""
        frames: list[bytes] = []
        while context.is_readable(self._socket):
            frames += context.receive(self._socket)
        return frames

    def send(self, frames: Sequence[bytes]) -> None:
        """Queue messages, one a frame, that travel together, as many as do. None is fine."""
        if not frames:
            return
        if len(frames) > _TOGETHER:
            for first in range(0, len(frames), _TOGETHER):
                self.send(frames[first : first + _TOGETHER])
            return
        send = self._socket.send
        # A peer that refuses our key leaves nobody to queue for. What is lost then is asked for again by who needs it.
        with contextlib.suppress(zmq.Again):
            for frame in frames[:-1]:
                send(frame, context.MORE_NOW)
            send(frames[-1], context.NOW)

    def wait(self, timeout: Seconds) -> bool:
        """Whether something can be received, waiting for it at most this long."""
        return bool(self._socket.poll(ms_from_seconds(timeout)))

    def stranger(self) -> Stranger | None:
        """Who does not know whom, where keys are shown; None = there is no such trouble."""
        return None if self._watch is None else self._watch.stranger()

    def close(self) -> None:
        """Close; what was sent to a scheduler that is there is still delivered for a short linger."""
        if self._watch is not None:
            self._watch.close()
        self._socket.close()
