"""The scheduler's door to the network: control clients over TCP, by CURVE keys and in no other way."""

import select
from contextlib import ExitStack
from pathlib import Path

import zmq

from qmsup import open_files
from qmsup.log import Log
from qmsup.spec import ControlSpec
from qmsup.transport import curve
from qmsup.transport.crowd import Crowd
from qmsup.transport.router import RouterSocket
from qmsup.units import Seconds, ms_from_seconds
from qmsup.wire import codec
from qmsup.wire.controlling import LARGEST_QUESTION

_log = Log("scheduler")

_MARK = b"\0tcp\0"
"""Before the identity of a peer from there. ZeroMQ lets no peer choose one that begins with a zero."""

_LARGEST = LARGEST_QUESTION + 1024
"""Bytes of a message, with what CURVE adds. ZeroMQ takes one in whole before it knows whose key it is under, so a
stranger could fill the memory."""

_MOST = 256
"""Connections, with and without a key."""

_SHOWS_KEY_WITHIN = Seconds(5.0)


class RemoteDoor:
    """Receives questions, and sends answers to those who came through here. For one thread, the one that made it."""

    def __init__(self, endpoint: str, *, secret_key: Path, clients: Path) -> None:
        """Bind.

        Args:
            endpoint: `tcp://address:port`.
            secret_key: file of the scheduler's own key.
            clients: folder of the public keys of those who may ask.

        Raises:
            ConfigError: the key cannot be read.
            OSError: the address cannot be bound.
        """
        keys = curve.read_keys(secret_key)
        self._open = ExitStack()

        def secure(socket: zmq.Socket[bytes]) -> None:
            curve.serve_with(socket, keys, domain)
            curve.allow_ipv6(socket, endpoint)
            socket.setsockopt(zmq.HANDSHAKE_IVL, ms_from_seconds(_SHOWS_KEY_WITHIN))
            self._crowd = Crowd(socket, endpoint, open_files.at_most(_MOST))
            self._open.callback(self._crowd.close)

        try:
            domain = self._open.enter_context(curve.admitting(clients))
            self._router = RouterSocket(endpoint, largest=_LARGEST, secure=secure)
            self._both = self._open.enter_context(select.epoll())
        except BaseException:
            self._open.close()
            raise
        for each in (self._router, self._crowd):
            self._both.register(each.fileno(), select.EPOLLIN)

    def fileno(self) -> int:
        """The descriptor to poll: edge-triggered, see RouterSocket."""
        return self._both.fileno()

    def receive(self) -> list[tuple[bytes, list[bytes]]]:
        """The questions that have come. What is none is dropped: no worker of ours is so far away."""
        self._crowd.look()
        received = [
            (_MARK + identity, [frame for frame in frames if codec.is_control(frame)])
            for identity, frames in self._router.receive()
        ]
        return [(identity, frames) for identity, frames in received if frames]

    def send(self, identity: bytes, frame: bytes) -> bool:
        """Answer somebody who came through here."""
        return self._router.send(identity.removeprefix(_MARK), frame)

    def close(self) -> None:
        """Unbind and close."""
        self._router.close()
        self._open.close()


def open_remote(control: ControlSpec | None) -> RemoteDoor | None:
    """The door that the configuration wants; None = none.

    Raises:
        ConfigError: the key cannot be read.
        OSError: the address cannot be bound.
    """
    if control is None:
        return None
    door = RemoteDoor(
        control.endpoint, secret_key=Path(control.secret_key), clients=Path(control.clients)
    )
    _log.info("scheduler.reachable", endpoint=control.endpoint)
    return door


class Doors:
    """Sends through the door that a peer came in by."""

    def __init__(self, local: RouterSocket, remote: RemoteDoor) -> None:
        self._local = local
        self._remote = remote

    def send(self, identity: bytes, frame: bytes) -> bool:
        """Queue one message for a peer; see RouterSocket."""
        door = self._remote if identity.startswith(_MARK) else self._local
        return door.send(identity, frame)

    def gather(self, identity: bytes, frame: bytes) -> None:
        """Queue one message for a worker, which is never so far away; see RouterSocket."""
        self._local.gather(identity, frame)

    def send_gathered(self) -> None:
        """Let that travel now."""
        self._local.send_gathered()
