"""An epoll loop: descriptors, timers, and the order of things in a turn.

A descriptor closed in a turn is not closed before its end: its number cannot come back meanwhile, so an event that
was reported together with its end can never reach a newcomer.
"""

import heapq
import itertools
import select
import socket
import time
from collections.abc import Callable

from qmsup.units import Seconds

_EVENTS_AT_ONCE = 512

Handler = Callable[[int], None]


class Loop:
    """For one thread. A subclass says what ends a turn, and what becomes of a handler that failed.

    Attributes:
        now: the monotonic clock at the start of the turn.
    """

    def __init__(self) -> None:
        self.now = time.monotonic()
        self._epoll = select.epoll()
        self._handlers: dict[int, Handler] = {}
        self._events: dict[int, int] = {}
        """What epoll was told to watch for, so that it is not told twice."""
        self._last: tuple[int, Handler] | None = None
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._timer_numbers = itertools.count()
        self._closing: list[socket.socket] = []
        self._keeps_back_until: float | None = None
        """When a subclass wants its turn at the latest; None = no sooner than something happens."""

    def watch(self, fd: int, events: int, handler: Handler) -> None:
        """Call `handler` with the events of a descriptor; a later watch replaces an earlier one."""
        known = self._events.get(fd)
        if known is None:
            self._epoll.register(fd, events)
        elif known != events:
            self._epoll.modify(fd, events)
        self._events[fd] = events
        self._handlers[fd] = handler

    def watch_last(self, fd: int, handler: Handler) -> None:
        """Watch a descriptor whose handler may close others and make new ones: it has its turn after all others."""
        self._epoll.register(fd, select.EPOLLIN)
        self._last = (fd, handler)

    def change(self, fd: int, events: int) -> None:
        """Watch other events of a descriptor."""
        self._epoll.modify(fd, events)
        self._events[fd] = events

    def pause(self, fd: int) -> None:
        """Hear nothing of a descriptor until `resume`; with no events at all it would still report hang-ups."""
        self._epoll.unregister(fd)

    def resume(self, fd: int, events: int) -> None:
        """Hear of a paused descriptor again."""
        self._epoll.register(fd, events)
        self._events[fd] = events

    def release(self, fd: int) -> None:
        """Watch a descriptor no more, which stays open; one that is not watched is ignored."""
        if self._handlers.pop(fd, None) is not None:
            del self._events[fd]
            self._epoll.unregister(fd)

    def discard(self, fd: int, sock: socket.socket) -> None:
        """Watch a socket no more, and close it when the turn ends."""
        self._handlers.pop(fd, None)
        self._events.pop(fd, None)
        self._closing.append(sock)

    def after(self, delay: Seconds, call: Callable[[], None]) -> None:
        """Call something later. It cannot be taken back: the callee looks whether it still matters."""
        heapq.heappush(self._timers, (self.now + delay, next(self._timer_numbers), call))

    def turn(self, timeout: float) -> bool:
        """Wait for something to happen, at most this long in seconds, and deal with it.

        Returns:
            Whether a descriptor had something; False = only time passed.
        """
        if self._timers or self._keeps_back_until is not None:
            timeout = self._until_next(timeout)
        events = self._epoll.poll(timeout, _EVENTS_AT_ONCE)
        self.now = time.monotonic()
        handlers = self._handlers
        last: Handler | None = None
        for fd, event in events:
            handler = handlers.get(fd)
            if handler is not None:
                try:
                    handler(event)
                except Exception:  # noqa: BLE001 - one client's misfortune must not end all the others
                    self.on_fault(handler)
            elif self._last is not None and fd == self._last[0]:
                last = self._last[1]
        if last is not None:
            last(select.EPOLLIN)
        timers = self._timers
        while timers and timers[0][0] <= self.now:
            call = heapq.heappop(timers)[2]
            try:
                call()
            except Exception:  # noqa: BLE001 - the same
                self.on_fault(call)
        self.on_turn()
        if self._closing:
            self._close_discarded()
        return bool(events)

    def on_turn(self) -> None:
        """Everything that was ready has been dealt with."""

    def on_fault(self, handler: Callable[..., None]) -> None:  # noqa: ARG002 - for subclasses
        """A handler or a timer raised; called while its exception is being handled."""
        raise  # noqa: PLE0704 - the one being handled

    def close(self) -> None:
        """End; what is watched is not closed."""
        self._close_discarded()
        self._epoll.close()

    def _until_next(self, timeout: float) -> float:
        due = self._keeps_back_until
        if self._timers and (due is None or self._timers[0][0] < due):
            due = self._timers[0][0]
        left = (due or 0.0) - time.monotonic()
        return timeout if left > timeout else left if left > 0 else 0.0

    def _close_discarded(self) -> None:
        for sock in self._closing:
            sock.close()
        self._closing.clear()
