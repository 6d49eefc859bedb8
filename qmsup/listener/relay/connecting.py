"""The way to an upstream: its address, a socket that is on its way there, and how long either may take."""

import socket
from functools import lru_cache

from qmsup.listener.relay.order import Remote
from qmsup.listener.relay.sending import Sending
from qmsup.units import Seconds

_STREAM = int(socket.SOCK_STREAM) | int(socket.SOCK_NONBLOCK)
_CONNECT_WITHIN = Seconds(10.0)

Address = tuple[str | int | bytes, ...] | str


class Way:
    """A socket that is not connected yet, and where to."""

    __slots__ = ("_address", "sock")

    def __init__(self, where: str) -> None:
        """Find the address.

        Args:
            where: `host:port`, or the path of a Unix socket.

        Raises:
            OSError: the host is not known, or no descriptor is left.
            ValueError: it is no address.
        """
        family, self._address = _address_of(where)
        self.sock = socket.socket(family, _STREAM)

    def begin(self) -> None:
        """Begin to connect.

        Raises:
            OSError: nobody is there.
        """
        if self.sock.family is not socket.AF_UNIX:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sock.connect_ex(self._address)
        elif self.sock.connect_ex(self._address):
            raise ConnectionRefusedError  # the scheduler process is gone, or just coming


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


@lru_cache(maxsize=256)
def _address_of(where: str) -> tuple[socket.AddressFamily, Address]:
    """As a socket address; a name is looked up once."""
    if where.startswith("/"):
        return socket.AF_UNIX, where
    host, _, port = where.rpartition(":")
    found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    family, _, _, _, address = found[0]
    return family, address
