"""Who is connected to a Unix socket of ours. When there are too many, the program with the most of them loses all.

ZeroMQ takes every connection there is, and where the process can have no descriptor more its thread ends the process
(`ipc_listener.cpp`: an assertion on what `accept` says). So a program that opens one connection after the other and
closes none would take the scheduler with it. ZeroMQ cannot end a single connection; the kernel can, and knows whose it
is. Everybody else keeps theirs. As that program may be quicker than we are, the socket has no name for a moment: who is
connected stays so, and who is not, tries again.
"""

import os
import secrets
import socket
import struct
import threading
from collections import defaultdict
from contextlib import ExitStack, suppress
from pathlib import Path

import zmq

from qmsup import open_files
from qmsup.log import Log
from qmsup.transport import context
from qmsup.units import Seconds, ms_from_seconds

MOST = 4096
"""Connections, or an eighth of the descriptors: the rest is for those who come before we look. A worker has one and
one for each question to the scheduler, a command one."""

_SAYS_WHO_WITHIN = Seconds(5.0)
"""Else ZeroMQ hangs up."""
_SHUT_FOR = Seconds(1.0)
_BACKLOG = 100
"""Who stands before the door when it shuts is let in."""
_EVENT = struct.Struct("=Hi")
_CREDENTIALS = struct.Struct("3i")

_log = Log("gateway")


class Doorkeeper:
    """Of one socket, for its thread."""

    def __init__(
        self, zmq_socket: zmq.Socket[bytes], endpoint: str, *, most: int | None = None
    ) -> None:
        """Begin to count.

        Args:
            zmq_socket: not yet bound.
            endpoint: where it is going to be, `ipc://path`.
            most: connections; None = what is usual, and fits this process.
        """
        self._socket = zmq_socket
        self._path = endpoint.removeprefix("ipc://")
        self._aside = _aside(self._path)
        with suppress(OSError):  # of a process that was killed in such a moment
            self._aside.unlink()
        self._opening: threading.Timer | None = None
        self._most = open_files.at_most(2 * MOST) // 2 if most is None else most
        self._connected: dict[int, None] = {}
        zmq_socket.setsockopt(zmq.HANDSHAKE_IVL, ms_from_seconds(_SAYS_WHO_WITHIN))
        zmq_socket.setsockopt(zmq.BACKLOG, min(_BACKLOG, self._most))
        address = f"inproc://doorkeeper-{secrets.token_hex(8)}"
        with ExitStack() as opened:
            # A place to look at somebody's connection when there is no free one any more.
            self._hand = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            opened.callback(os.close, self._hand)
            zmq_socket.monitor(address, zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED)
            self._events = opened.enter_context(context.new_socket(zmq.PAIR, address))
            # ZeroMQ would wait for room, all sockets of the process with it, while nobody looks.
            self._events.setsockopt(zmq.RCVHWM, 0)
            self._events.connect(address)
            opened.pop_all()
        self.look()  # ZeroMQ wakes nobody who has not looked in vain before

    def fileno(self) -> int:
        """The descriptor to poll: edge-triggered, see RouterSocket."""
        return int(self._events.getsockopt(zmq.FD))

    def look(self) -> None:
        """Count who came and who left, and send away who is too many."""
        while context.is_readable(self._events):
            told, *_ = self._events.recv_multipart(context.NOW)
            event, descriptor = _EVENT.unpack(told)
            if event == zmq.EVENT_ACCEPTED:
                self._connected[descriptor] = None
            else:
                self._connected.pop(descriptor, None)
            if len(self._connected) > self._most:
                self._make_room()

    def close(self) -> None:
        """Count no more; the socket may be closed already."""
        if not self._socket.closed:
            self._socket.disable_monitor()
        self._events.close(linger=0)
        os.close(self._hand)
        if self._opening is not None:
            self._opening.cancel()
            self._opening.join()
            self._aside.unlink(missing_ok=True)

    def _shut(self) -> None:
        """Take the socket's name away for a while: from this very moment on nobody connects to it."""
        with suppress(OSError):  # it is shut already, or somebody took it away
            Path(self._path).rename(self._aside)
            # A thread, as nobody may wake us for long; there is none but now.
            self._opening = threading.Timer(_SHUT_FOR, self._open)
            self._opening.daemon = True
            self._opening.start()

    def _open(self) -> None:
        """In the timer's thread: give it its name again, unless somebody else has it."""
        path = Path(self._path)
        try:
            path.hardlink_to(self._aside)
        except OSError:  # another's, or a folder that knows no links
            if not path.exists():
                with suppress(OSError):
                    self._aside.rename(path)
        self._aside.unlink(missing_ok=True)

    def _make_room(self) -> None:
        whose: defaultdict[int, list[int]] = defaultdict(list)
        for descriptor in tuple(self._connected):
            if (pid := self._owner_of(descriptor)) is not None:
                whose[pid].append(descriptor)
            else:  # ZeroMQ does not tell of each that ends
                del self._connected[descriptor]
        if len(self._connected) <= self._most:
            return
        self._shut()
        # Some more than are too many, or with a crowd of programs all this would be done for each that comes.
        left = min(self._most, len(self._connected) - self._most // 8)
        while len(self._connected) > left:
            # Of those with as many, who came last: workers are there from the start, and have one.
            pid = max(reversed(whose), key=lambda each: len(whose[each]))
            for descriptor in whose[pid]:
                self._owner_of(descriptor, hang_up=True)
                del self._connected[descriptor]
            _log.warning_of_a_peer(
                "peer.too_many_connections",
                pid=pid,
                connections=len(whose.pop(pid)),
                most=self._most,
                socket=self._path,
                hint="its connections were ended: a program that opens them and closes none",
            )

    def _owner_of(self, descriptor: int, *, hang_up: bool = False) -> int | None:
        """The process at the other end; None = that is no connection of ours (any more)."""
        try:
            # What it was told by may be somebody else's by now: first held fast, then looked at.
            os.dup2(descriptor, self._hand, inheritable=False)
            held = socket.socket(fileno=self._hand)
        except OSError:
            return None
        try:
            if held.family != socket.AF_UNIX or held.getsockname() != self._path:
                return None
            credentials = held.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            if hang_up:
                held.shutdown(socket.SHUT_RDWR)
        except OSError:
            return None
        finally:
            held.detach()
        pid, _, _ = _CREDENTIALS.unpack(credentials)
        return int(pid)


def may_be_shut(path: str) -> bool:
    """Whether a socket that somebody has just not found may be there all the same, without its name for a moment.

    True also for a while, until the next one begins, where its process was killed then.
    """
    return (
        _aside(path).exists() or Path(path).exists()
    )  # in this order: it has its name before it has it aside no more


def _aside(path: str) -> Path:
    return Path(f"{path}.shut")


def doorkeepers_of(zmq_socket: zmq.Socket[bytes], endpoint: str) -> tuple[Doorkeeper, ...]:
    """One for a Unix socket that is to be bound, none for another.

    Raises:
        OSError: this process can have no descriptor more; the socket is closed then.
    """
    if not endpoint.startswith("ipc://"):
        return ()
    try:
        return (Doorkeeper(zmq_socket, endpoint),)
    except (zmq.ZMQError, OSError) as e:
        zmq_socket.close(linger=0)
        raise context.os_error(e, endpoint) from e
