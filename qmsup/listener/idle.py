"""Connections between two requests, or before their first: watched by the loop, closed when nothing comes."""

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
        self._last: float | None = None
        self._deadlines: dict[TConn, float] = {}
        """In the order in which they end: all wait equally long."""

    def __len__(self) -> int:
        return len(self._deadlines)

    def add(self, conn: TConn) -> None:
        """Wait for a connection that does not block."""
        deadline = self._loop.now + self._timeout
        self._deadlines[conn] = deadline if self._last is None else min(deadline, self._last)
        self._loop.watch(conn.sock.fileno(), CLIENT, partial(self._ready, conn))

    def end_by(self, at: float) -> None:
        """Wait for nobody beyond this point of the monotonic clock."""
        self._last = at
        self._deadlines = {conn: min(end, at) for conn, end in self._deadlines.items()}

    def close_expired(self, *, everyone: bool = False) -> None:
        """Close those whose time is up."""
        now = time.monotonic()
        while self._deadlines:
            conn, deadline = next(iter(self._deadlines.items()))
            if deadline > now and not everyone:
                return
            del self._deadlines[conn]
            self._loop.discard(conn.sock.fileno(), conn.sock)
            self._on_closed()

    def _ready(self, conn: TConn, _event: int) -> None:
        if self._deadlines.pop(conn, None) is not None:
            self._on_ready(conn)
