"""Ports for children: free when chosen, had by no living child, and proved to be the child's once it answers."""

import errno
import itertools
import socket
import threading
from collections.abc import Iterable
from enum import StrEnum

from qmsup import open_files
from qmsup.errors import ChildError
from qmsup.processes.listening import listening_inodes
from qmsup.processes.procfs import open_sockets

_SPAN = 1000
_LAST = 65535


class PortPool:
    """Hands out ports from `start` upward, to any thread.

    A port given back comes last again: for a moment somebody may still mean its former child by it.
    """

    def __init__(self, start: int, *, reserved: Iterable[int] = ()) -> None:
        self._start = start
        self._end = min(start + _SPAN, _LAST + 1)
        self._next = start
        self._reserved = frozenset(reserved)
        self._taken: set[int] = set()
        self._lock = threading.Lock()

    def take(self) -> int:
        """A port that could be bound just now.

        Raises:
            ChildError: none is left, or none can be tried.
        """
        try:
            return self._first_free()
        except OSError as error:
            message = f"no port can be tried: {error.strerror}; {open_files.MORE}"
            raise ChildError(message) from error

    def _first_free(self) -> int:
        with self._lock:
            for port in itertools.chain(
                range(self._next, self._end), range(self._start, self._next)
            ):
                if port in self._taken or port in self._reserved or not _is_free(port):
                    continue
                self._taken.add(port)
                self._next = port + 1 if port + 1 < self._end else self._start
                return port
        message = f"no free port from {self._start} to {self._end - 1}: set startPort to where there are some"
        raise ChildError(message)

    def reserve(self, ports: Iterable[int]) -> None:
        """Pass these over from now on, and no more those that were reserved before."""
        with self._lock:
            self._reserved = frozenset(ports)

    def claim(self, port: int) -> None:
        """A child of a former scheduler has it already."""
        with self._lock:
            self._taken.add(port)

    def give_back(self, port: int) -> None:
        """The child that had it is gone. Ports that were not handed out are ignored."""
        with self._lock:
            self._taken.discard(port)


def _is_free(port: int) -> bool:
    # Without SO_REUSEPORT, so a port that another sd-server shares counts as taken; with SO_REUSEADDR, so one whose
    # old connections linger counts as free.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):  # the latter: for root alone
                return False
            raise
    return True


class Owner(StrEnum):
    """Whose socket answers on a port."""

    OURS = "ours"
    FOREIGN = "foreign"
    NOBODY = "nobody"
    """Nothing listens as far as we can see: perhaps in another network namespace, or nothing can be seen."""


def owner_of(port: int, pids: Iterable[int]) -> Owner:
    """Whether all that listens on a local port belongs to these processes.

    All, because two sd-servers share a port without a word, and then half of the requests go astray.
    """
    listening = listening_inodes(port)
    if not listening:
        return Owner.NOBODY
    try:
        for inode in (inode for pid in pids for inode in open_sockets(pid)):
            listening.discard(inode)
            if not listening:
                return Owner.OURS
    except OSError:  # no descriptor is left to look with
        return Owner.NOBODY
    return Owner.FOREIGN


def is_taken(port: int, pids: Iterable[int]) -> bool:
    """Whether others have a local port: one listens there, or sends from it, as the kernel gives ports out for that."""
    owner = owner_of(port, pids)
    try:
        return owner is Owner.FOREIGN or (owner is Owner.NOBODY and not _is_free(port))
    except OSError:  # it cannot be tried
        return False
