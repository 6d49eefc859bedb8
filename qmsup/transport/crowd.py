"""How many are connected to an address that strangers can reach. Too many are sent away, all of them, for a moment.

Each connection takes a descriptor before it has shown a key, and a process without descriptors cannot go on. ZeroMQ
cannot end a single one: who has a key comes again by itself.
"""

import secrets
import time

import zmq
from zmq.utils.monitor import recv_monitor_message

from qmsup.log import Log
from qmsup.transport import context
from qmsup.units import Seconds

_PAUSE = Seconds(1.0)
"""Until the address is bound again."""

_log = Log("control")


class Crowd:
    """Of one bound socket, for its thread."""

    def __init__(self, socket: zmq.Socket[bytes], endpoint: str, most: int) -> None:
        """Begin to count.

        Args:
            socket: not yet bound.
            endpoint: where it is going to be.
            most: connections.
        """
        self._socket = socket
        self._endpoint = endpoint
        self._most = most
        self._connected: set[int] = set()
        self._opens_at: float | None = None
        address = f"inproc://crowd-{secrets.token_hex(8)}"
        socket.monitor(address, zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED)
        self._events = context.current().socket(zmq.PAIR)
        # ZeroMQ would wait for room, all sockets of the process with it, while nobody looks.
        self._events.setsockopt(zmq.RCVHWM, 0)
        self._events.connect(address)

    def fileno(self) -> int:
        """The descriptor to poll: edge-triggered, see RouterSocket."""
        return int(self._events.getsockopt(zmq.FD))

    def look(self) -> None:
        """Count, and send all away or let them in again."""
        while context.is_readable(self._events):
            self._take(recv_monitor_message(self._events))
        if self._opens_at is None:
            if len(self._connected) > self._most:
                self._shut()
        elif time.monotonic() >= self._opens_at:
            self._open()

    def close(self) -> None:
        """Count no more; the socket may be closed already."""
        if not self._socket.closed:
            self._socket.disable_monitor()
        self._events.close(linger=0)

    def _take(self, told: object) -> None:
        event, descriptor = told["event"], told["value"]  # type: ignore[index]  # a dict, by pyzmq
        if event == zmq.EVENT_ACCEPTED:
            self._connected.add(descriptor)
        else:
            self._connected.discard(descriptor)

    def _shut(self) -> None:
        self._socket.unbind(self._endpoint)  # which ends what came in by it
        self._opens_at = time.monotonic() + _PAUSE
        _log.warning(
            "control.crowded",
            endpoint=self._endpoint,
            connections=len(self._connected),
            hint="all were sent away: keep strangers from this port",
        )
        self._connected.clear()

    def _open(self) -> None:
        try:
            self._socket.bind(self._endpoint)
        except zmq.ZMQError:  # still bound, or somebody else's
            self._opens_at = time.monotonic() + _PAUSE
            return
        self._opens_at = None
        _log.info("control.open_again", endpoint=self._endpoint)
