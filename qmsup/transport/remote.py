"""The scheduler's door to the network: control clients over TCP, by CURVE keys and in no other way."""

from contextlib import ExitStack
from pathlib import Path

from qmsup.log import Log
from qmsup.spec import ControlSpec
from qmsup.transport import curve
from qmsup.transport.router import RouterSocket
from qmsup.wire import codec
from qmsup.wire.controlling import LARGEST_QUESTION

_log = Log("scheduler")

_MARK = b"\0tcp\0"
"""Before the identity of a peer from there. ZeroMQ lets no peer choose one that begins with a zero."""

_LARGEST = LARGEST_QUESTION + 1024
"""Bytes of a message, with what CURVE adds. ZeroMQ takes one in whole before it knows whose key it is under, so a
stranger could fill the memory."""


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
        try:
            domain = self._open.enter_context(curve.admitting(clients))
            self._router = RouterSocket(
                endpoint,
                largest=_LARGEST,
                secure=lambda socket: curve.serve_with(socket, keys, domain),
            )
        except BaseException:
            self._open.close()
            raise

    def fileno(self) -> int:
        """The descriptor to poll: edge-triggered, see RouterSocket."""
        return self._router.fileno()

    def receive(self) -> list[tuple[bytes, list[bytes]]]:
        """The questions that have come. What is none is dropped: no worker of ours is so far away."""
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
