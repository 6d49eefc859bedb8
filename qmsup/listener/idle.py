"""Connections between two requests, or before their first: watched by the loop, closed when nothing comes.

So are those in the middle of a small request, which nobody has to wait for in a thread. When the worker ends, the
former get a short time to send what they had begun to send; the latter are under way, as a stream is.
"""

import time
from collections.abc import Callable
from functools import partial

from gunicorn.workers.gthread import TConn

from qmsup.listener.relay.held import CLIENT
from qmsup.listener.relay.loop import Loop
from qmsup.units import Seconds


class Idle:
    """Waits for the next bytes of connections that nobody else looks after."""

    def __init__(
        self,
        loop: Loop,
        timeout: Seconds,
        *,
        on_ready: Callable[[TConn], None],
        on_closed: Callable[[], None],
    ) -> None:
        """None yet.

        Args:
            loop: watches them.
            timeout: how long one may stay silent.
            on_ready: something came, or the client closed; the connection is idle no more, but still watched.
            on_closed: one was closed, since nothing came.
        """
        self._loop = loop
        self._timeout = timeout
        self._on_ready = on_ready
        self._on_closed = on_closed
        self._longest = timeout
        self._deadlines: dict[TConn, float] = {}
        """In the order in which they end: all wait equally long."""
        self._halfway: dict[TConn, float] = {}
        """Of those in the middle of a request, in the same order."""

    def __len__(self) -> int:
        return len(self._deadlines) + len(self._halfway)

    def add(self, conn: TConn, *, has_begun: bool = False) -> None:
        """Wait for a connection that does not block.

        Args:
            conn: whose next bytes are to come.
            has_begun: they go on with a request.
        """
        if has_begun:
            self._halfway[conn] = self._loop.now + self._timeout
        else:
            self._deadlines[conn] = self._loop.now + self._longest
        self._loop.watch(conn.sock.fileno(), CLIENT, partial(self._ready, conn))

    def end_by(self, at: float) -> None:
        """Wait for no new request beyond this point of the monotonic clock.

        Whose answer ends later was told that its connection goes on: it has as long from then.
        """
        self._longest = Seconds(max(0.0, min(self._longest, at - time.monotonic())))
        self._deadlines = {conn: min(end, at) for conn, end in self._deadlines.items()}

    def close_expired(self, *, everyone: bool = False) -> None:
        """Close those whose time is up."""
        self._close_expired(self._deadlines, everyone=everyone)
        self._close_expired(self._halfway, everyone=everyone)

    def _close_expired(self, deadlines: dict[TConn, float], *, everyone: bool) -> None:
        now = time.monotonic()
        while deadlines:
            conn, deadline = next(iter(deadlines.items()))
            if deadline > now and not everyone:
                return
            del deadlines[conn]
            self._loop.discard(conn.sock.fileno(), conn.sock)
            self._on_closed()

    def _ready(self, conn: TConn, _event: int) -> None:
        if (self._deadlines.pop(conn, None) or self._halfway.pop(conn, None)) is not None:
            self._on_ready(conn)
