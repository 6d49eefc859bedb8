"""Addresses of upstreams. A name of the DNS is looked up in a thread, so that a slow server of names holds up nobody.

What was found counts for a minute; where it cannot be found anew it counts on, for a machine's address outlives an
outage of the server of names.
"""

import os
import select
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from qmsup.listener.relay.loop import Loop
from qmsup.units import Seconds

KEPT = Seconds(60.0)
_NUMERIC = int(socket.AI_NUMERICHOST) | int(socket.AI_NUMERICSERV)

Address = tuple[str | int | bytes, ...] | str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a socket can connect to."""

    family: socket.AddressFamily
    address: Address


Places = tuple[Place, ...]
"""The best first; never empty."""
Taker = Callable[[Places | OSError], None]


class Names:
    """For the thread of a loop."""

    def __init__(self, loop: Loop) -> None:
        """Know nothing yet, and start no thread."""
        self._loop = loop
        self._known: dict[str, tuple[float, Places]] = {}
        self._waiting: dict[str, list[Taker]] = {}
        self._found: list[tuple[str, Places | OSError]] = []
        self._lock = threading.Lock()
        self._nudge_fd = -1

    def find(self, where: str, take: Taker) -> None:
        """Hand over where a server is: at once if that is known, else in a later turn of the loop.

        Args:
            where: `host:port`, or the path of a Unix socket.
            take: gets the places, or why there are none.
        """
        known = self._at_once(where)
        if known is not None:
            take(known)
            return
        waiting = self._waiting.setdefault(where, [])
        waiting.append(take)
        if len(waiting) == 1:
            self._look_up(where)

    def close(self) -> None:
        """Nobody waits any more; a look-up that is under way ends for itself."""
        with self._lock:
            if self._nudge_fd >= 0:
                self._loop.release(self._nudge_fd)
                os.close(self._nudge_fd)
            self._nudge_fd = -1
        self._waiting.clear()

    def _at_once(self, where: str) -> Places | OSError | None:
        try:
            return written_out(where)
        except ValueError as error:
            return OSError(f"{where!r} is no address: {error}")
        except socket.gaierror:  # a name
            until, places = self._known.get(where, (float("-inf"), ()))
            return places if self._loop.now < until else None

    def _look_up(self, where: str) -> None:
        if self._nudge_fd < 0:
            self._nudge_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._loop.watch(self._nudge_fd, select.EPOLLIN, self._on_found)
        # A daemon: the server of names may take half a minute, and nobody waits for that at the end.
        threading.Thread(
            target=self._ask, args=(where,), name=f"names-{where}", daemon=True
        ).start()

    def _ask(self, where: str) -> None:
        """In a thread of its own."""
        found: Places | OSError
        try:
            found = _places(where, 0)
        except UnicodeError:  # a part of the name is longer than any may be
            found = OSError("it is no name of a host")
        except OSError as error:
            found = error
        with self._lock:
            self._found.append((where, found))
            if self._nudge_fd >= 0:
                os.eventfd_write(self._nudge_fd, 1)

    def _on_found(self, _event: int) -> None:
        os.eventfd_read(self._nudge_fd)
        with self._lock:
            found, self._found = self._found, []
        for where, places in found:
            if isinstance(places, OSError) and where in self._known:
                places = self._known[where][1]  # noqa: PLW2901 - what was true a while ago
            if not isinstance(places, OSError):
                self._known[where] = (self._loop.now + KEPT, places)
            for take in self._waiting.pop(where, ()):
                take(places)


@lru_cache(maxsize=256)
def written_out(where: str) -> Places:
    """The place that an address in figures, or the path of a Unix socket, is.

    Raises:
        socket.gaierror: it is a name.
        ValueError: it is neither.
    """
    if where.startswith("/"):
        return (Place(socket.AF_UNIX, where),)
    return _places(where, _NUMERIC)


def _places(where: str, flags: int) -> Places:
    host, _, port = where.rpartition(":")
    if not host:
        raise ValueError("it has no host")
    found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=flags)
    return tuple(Place(family, address) for family, _, _, _, address in found)
