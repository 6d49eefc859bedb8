"""Addresses of upstreams. A name of the DNS is looked up in a thread, so that a slow server of names holds up nobody.

What was found counts for a minute; where it cannot be found anew it counts on, for a machine's address outlives an
outage of the server of names.
"""

import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

from qmsup.listener.relay.errands import Errands
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

    def __init__(self, loop: Loop, errands: Errands) -> None:
        """Know nothing yet.

        Args:
            loop: theirs.
            errands: bring the questions to the server of names.
        """
        self._loop = loop
        self._errands = errands
        self._known: dict[str, tuple[float, Places]] = {}
        self._waiting: dict[str, list[Taker]] = {}

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
            self._errands.run(f"names-{where}", partial(_asked, where), partial(self._take, where))

    def _at_once(self, where: str) -> Places | OSError | None:
        try:
            return written_out(where)
        except ValueError as error:
            return OSError(f"{where!r} is no address: {error}")
        except socket.gaierror:  # a name
            until, places = self._known.get(where, (float("-inf"), ()))
            return places if self._loop.now < until else None

    def _take(self, where: str, found: Places | OSError) -> None:
        if isinstance(found, OSError) and where in self._known:
            found = self._known[where][1]  # what was true a while ago
        if not isinstance(found, OSError):
            self._known[where] = (self._loop.now + KEPT, found)
        for take in self._waiting.pop(where, ()):
            take(found)


def _asked(where: str) -> Places | OSError:
    """In a thread of its own."""
    try:
        return _places(where, 0)
    except UnicodeError:  # a part of the name is longer than any may be
        return OSError("it is no name of a host")
    except OSError as error:
        return error


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
