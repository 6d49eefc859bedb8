"""The scheduler's end: one ROUTER socket that all workers and control clients connect to."""

import errno
from collections.abc import Callable, Sequence

import zmq

from qmsup.log import Log
from qmsup.transport import context
from qmsup.transport.doorkeeper import Doorkeeper, doorkeepers_of
from qmsup.transport.naming import name_again
from qmsup.units import Seconds, ms_from_seconds

PEER_BOUND = 50_000
"""Messages kept for one peer that does not read, about 10 MB. ZeroMQ's usual 1 000 is one burst of
grants; without MANDATORY it would drop the rest without a word."""

UNREAD_BOUND = 50_000
"""Messages of one peer that we have not read. Then its connection is not read from, so that what it sends gathers where
it comes from; a second later it is cut off, as who is frozen is. A worker of thousands of streams has far fewer."""

LARGEST = 16 * 1024 * 1024
"""Bytes of a message; a peer that sends a larger one is cut off. A greeting with 40 000 leases is as large."""

MOST_FRAMES = 4096
"""Messages that travel together and are read. Who sends more at once would hold up everybody else; ours send fewer
(DealerSocket)."""

_TOGETHER = 32
"""Messages that are gathered for one peer at most: the first is not to wait for long."""

_A_TURN = 8192
"""Messages read in one turn, give or take one multipart, however they travel."""

HEARTBEAT = Seconds(0.3)
HEARTBEAT_TIMEOUT = Seconds(0.9)
"""A frozen peer is cut off after about 1.2 s. What it had not read is lost then; it reconnects when it
thaws, and everything between us can be asked for again."""

_log = Log("gateway")


class RouterSocket:
    """Receives from every peer, sends to one by identity. For one thread, the one that made it.

    The descriptor is edge-triggered and tells of changes only; any call here may swallow one. So `receive`
    before each wait, until it returns nothing.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        peer_bound: int = PEER_BOUND,
        unread_bound: int = UNREAD_BOUND,
        largest: int = LARGEST,
        secure: Callable[[zmq.Socket[bytes]], None] | None = None,
    ) -> None:
        """Bind; a socket file left by a dead process is replaced.

        Args:
            endpoint: `ipc://path`; the folder must exist, the path stay under 108 bytes.
            peer_bound: messages kept for one peer that does not read.
            unread_bound: messages of one peer that are kept until they are read.
            largest: bytes of a message; a peer that sends a larger one is cut off.
            secure: sets up who may connect; None = whoever can reach the address.

        Raises:
            OSError: the address cannot be bound.
        """
        self._endpoint = endpoint
        self._socket = context.new_socket(zmq.ROUTER, endpoint)
        self._gathered: list[bytes] = []
        """For one peer, its identity first."""
        self._socket.setsockopt(zmq.LINGER, ms_from_seconds(context.LINGER))
        self._socket.setsockopt(zmq.RCVHWM, unread_bound)
        self._socket.setsockopt(zmq.SNDHWM, peer_bound)
        self._socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
        self._socket.setsockopt(zmq.MAXMSGSIZE, largest)
        # A peer may be back before we noticed that its old connection broke: the new one wins. Without
        # this, ROUTER would ignore the newcomer for as long as it lives.
        self._socket.setsockopt(zmq.ROUTER_HANDOVER, 1)
        self._socket.setsockopt(zmq.HEARTBEAT_IVL, ms_from_seconds(HEARTBEAT))
        self._socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, ms_from_seconds(HEARTBEAT_TIMEOUT))
        self.doorkeepers: tuple[Doorkeeper, ...] = doorkeepers_of(self._socket, endpoint)
        """Of a Unix socket: each has a descriptor to poll, and is to look then."""
        try:
            if secure is not None:
                secure(self._socket)
            self._socket.bind(endpoint)
        except zmq.ZMQError as e:
            self._socket.close(linger=0)
            for keeper in self.doorkeepers:
                keeper.close()
            raise context.os_error(e, endpoint) from e

    def name_again(self) -> bool:
        """Be found in the folder again if somebody removed the socket's file; whether that was so.

        Raises:
            OSError: it cannot be made there.
        """
        return name_again(self._socket, self._endpoint)

    def fileno(self) -> int:
        """The descriptor to poll; see the class on how."""
        return int(self._socket.getsockopt(zmq.FD))

    def receive(self, limit: int = 200) -> list[tuple[bytes, list[bytes]]]:
        """What has come, at most `limit` multiparts, without waiting: (sender's identity, its frames)."""
        self.send_gathered()
        received: list[tuple[bytes, list[bytes]]] = []
        count = 0
        while len(received) < limit and count < _A_TURN and context.is_readable(self._socket):
            identity, *frames = context.receive(self._socket)
            if len(frames) > MOST_FRAMES:
                _log.warning_of_a_peer(
                    "peer.too_much_at_once",
                    peer=identity.decode("utf-8", "backslashreplace"),
                    messages=len(frames),
                )
                del frames[MOST_FRAMES:]
            count += len(frames)
            received.append((identity, frames))
        return received

    def send(self, identity: bytes, frame: bytes) -> bool:
        """Queue one message for a peer, without waiting, behind those that were gathered.

        Returns:
            False when it was not taken: the peer is gone, or has not read `peer_bound` messages.
        """
        self.send_gathered()
        return self._send((identity, frame))

    def gather(self, identity: bytes, frame: bytes) -> None:
        """Queue one message that may travel with others for the same peer, in the order told; before the next wait.

        Half of what a message costs, here and there, is that it travels.
        """
        gathered = self._gathered
        if gathered and (gathered[0] != identity or len(gathered) > _TOGETHER):
            self.send_gathered()
        if not gathered:
            gathered.append(identity)
        gathered.append(frame)

    def send_gathered(self) -> None:
        """Let what was gathered travel now: for who has more to do before the next wait."""
        if self._gathered:
            self._send(self._gathered)
            self._gathered.clear()

    def _send(self, frames: Sequence[bytes]) -> bool:
        send = self._socket.send
        try:
            for frame in frames[:-1]:
                send(frame, context.MORE_NOW)
            send(frames[-1], context.NOW)
        except zmq.Again:
            return False
        except zmq.ZMQError as e:
            if e.errno == errno.EHOSTUNREACH:
                return False
            raise
        return True

    def close(self) -> None:
        """Unbind and close; what was sent is still delivered for a short linger."""
        self.send_gathered()
        for keeper in self.doorkeepers:
            keeper.close()
        self._socket.close()
