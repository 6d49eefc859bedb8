"""Requests that go from box to box in a circle: two that name each other as the peer of one model would never end.

Each request for another machine carries a mark for every port that sent it on, and whoever finds its own mark on one
that is to leave again refuses it. A mark tells nothing but itself.
"""

import hashlib
import socket
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from qmsup import places
from qmsup.errors import Code, Refusal, RequestError
from qmsup.ids import ModelId
from qmsup.listener.body import Environ
from qmsup.listener.relay.order import RelayOrder
from qmsup.spec import ListenerSpec

_HEADER = "X-QM-Via"
_KEY = "HTTP_X_QM_VIA"
_DIGITS = 12
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Circles:
    """Of one listener."""

    def __init__(self, listener: ListenerSpec) -> None:
        """Know whose mark is made."""
        self._listener = listener
        self._box = _name_of_box()

    def marked(self, order: RelayOrder, environ: Environ) -> RelayOrder:
        """The same request, with a mark if it is for another machine.

        Raises:
            RequestError: it has been here, and would go on for ever.
        """
        if order.peer is None and order.way is None:
            return order
        mark = _mark(self._box, self._listener.name, order.model)
        came_by = [each.strip() for each in environ.get(_KEY, "").split(",")]
        if mark in came_by:
            if not isinstance(order.body, bytes):
                order.body.close()
            raise RequestError(self._refusal(order))
        seen = [each for each in came_by if each.isalnum() and each.isascii()]
        line = f"{_HEADER}: {', '.join([*seen, mark])}\r\n"
        return replace(order, head=order.head + line.encode())

    def _refusal(self, order: RelayOrder) -> Refusal:
        own = self._listener
        here = f"port {own.name} ({own.host}:{own.port}) of {socket.gethostname()}"
        if order.peer is not None:
            there = f"peer {order.peer.name} ({order.peer.upstream})"
        else:
            there = f"the hosts of route {order.way.route}" if order.way is not None else ""
        message = (
            f"model {order.model} goes in a circle: {here} sends it to {there}, and from there it came back: "
            "take it off one of the two, or have the model itself on one"
        )
        return Refusal(code=Code.UPSTREAM_FAILED, message=message)


def _name_of_box() -> str:
    """Nobody else's, also among containers of one machine and qmsups in one container."""
    boot = ""
    with suppress(OSError):
        boot = _BOOT.read_text()
    return f"{socket.gethostname()}|{boot}|{places.state_dir()}"


@lru_cache(maxsize=1024)
def _mark(box: str, listener: str, model: ModelId) -> str:
    return hashlib.sha256(f"{box}|{listener}|{model}".encode()).hexdigest()[:_DIGITS]
