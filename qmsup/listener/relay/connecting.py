"""The way to an upstream: from its name to a socket that takes bytes, and how long that may take."""

import errno
import os
import socket
from collections.abc import Callable

from qmsup.listener.relay.loop import Loop
from qmsup.listener.relay.names import Names, Place, Places
from qmsup.listener.relay.order import Remote
from qmsup.listener.relay.secured import Greeting, Secured, Tls
from qmsup.listener.relay.sending import Sending
from qmsup.units import Seconds

_STREAM = int(socket.SOCK_STREAM) | int(socket.SOCK_NONBLOCK)
_CONNECT_WITHIN = Seconds(10.0)
_ON_ITS_WAY = frozenset({0, errno.EINPROGRESS})


class Way:
    """To one server, once. It hands over a socket, or says why there is none."""

    __slots__ = ("_greeting", "_is_over", "_loop", "_lost", "_reached", "_tls", "_turn")

    def __init__(
        self,
        loop: Loop,
        reached: Callable[[socket.socket], None],
        lost: Callable[[OSError], None],
        remote: Remote | None = None,
        *,
        turn: int = 0,
    ) -> None:
        """Begin nothing yet.

        Args:
            loop: theirs.
            reached: gets the socket, which may still be connecting without TLS; it is the taker's to watch and close.
            lost: hears why there is none. Just one of the two is called, once, perhaps before `begin` returns.
            remote: says whether it is spoken to over TLS; None = it is on this box, and is not.
            turn: how often it was tried before: a server with several addresses is tried at the next.
        """
        self._loop = loop
        self._reached = reached
        self._lost = lost
        self._turn = turn
        self._tls = None if remote is None else remote.tls
        self._greeting: Greeting | None = None
        self._is_over = False

    def begin(self, names: Names, where: str) -> None:
        """Look the server up, and connect.

        Args:
            names: knows addresses.
            where: `host:port`, or the path of a Unix socket.
        """
        names.find(where, self._take)

    def give_up(self) -> None:
        """Nobody needs it any more: neither of the two is called."""
        self._is_over = True
        if self._greeting is not None:
            self._greeting.give_up()
            self._greeting = None

    def _take(self, found: Places | OSError) -> None:
        if self._is_over:
            return
        self._is_over = True
        try:
            if isinstance(found, OSError):
                raise found
            sock = _connected(found, self._turn, self._tls)
        except OSError as error:
            self._lost(error)
            return
        if isinstance(sock, Secured):
            self._greeting = Greeting(self._loop, sock, self._reached, self._lost)
        else:
            self._reached(sock)


def too_late(sending: Sending | None, remote: Remote | None, waited: float) -> str:
    """What an upstream that has said nothing yet has not done in its time; "" = it still may.

    Args:
        sending: what is left of the request; None = it is out.
        remote: where it goes, if to another machine.
        waited: seconds since the connection was begun, or since the request was out.
    """
    within = _CONNECT_WITHIN if remote is None else remote.connect_within
    if sending is not None and not sending.has_begun and waited > within:
        return f"no connection within {within:g} s"
    if sending is None and remote is not None and 0 < remote.answer_within < waited:
        return f"no answer within {remote.answer_within:g} s"
    return ""


def _connected(places: Places, turn: int, tls: Tls | None) -> socket.socket:
    """A socket that is connecting to the first of the places that can be tried at all.

    Raises:
        OSError: to none of them, as the last one has it.
    """
    start = turn % len(places)
    error: OSError = ConnectionRefusedError()
    for place in places[start:] + places[:start]:
        sock = socket.socket(place.family, _STREAM)
        if tls is not None:
            sock = tls.around(sock)
        failed = _begin(sock, place)
        if failed is None:
            return sock
        sock.close()
        error = failed
    raise error


def _begin(sock: socket.socket, place: Place) -> OSError | None:
    if place.family is socket.AF_UNIX:
        # The scheduler process is gone, or just coming.
        return ConnectionRefusedError() if sock.connect_ex(place.address) else None
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    number = sock.connect_ex(place.address)
    return None if number in _ON_ITS_WAY else OSError(number, os.strerror(number))
