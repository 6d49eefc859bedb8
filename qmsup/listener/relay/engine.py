"""The epoll loop that holds every relayed client of a worker: no thread waits for one, none streams to one.

The engine knows descriptors, timers and the order of things; `held.Held` knows one client; `machine.Exchange`
decides. gunicorn's own poller is one descriptor among the others.

A descriptor closed in a turn is not closed before its end: its number cannot come back meanwhile, so an event that
was reported together with its end can never reach a newcomer.
"""

import heapq
import itertools
import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from qmsup.listener.link import Link
from qmsup.listener.placeholder import Placeholder
from qmsup.listener.relay.held import Held
from qmsup.listener.relay.lingering import Lingering
from qmsup.listener.relay.machine import Exchange
from qmsup.listener.relay.order import RelayOrder
from qmsup.log import Log
from qmsup.units import Seconds
from qmsup.wire.listening import Ask

_EVENTS_AT_ONCE = 512
_TICK = Seconds(1.0)
_LINGER = Seconds(2.0)
_SOONEST = 0.001

_log = Log("relay")

Handler = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayOptions:
    """What the configuration says about relaying."""

    send_loading_state: bool = False
    loading_remarks: bool = True
    access_log: bool = True


class Engine:
    """One per worker process, used by one thread."""

    def __init__(self, link: Link, options: RelayOptions) -> None:
        self.link = link
        self.options = options
        self.now = time.monotonic()
        self._epoll = select.epoll()
        self._handlers: dict[int, Handler] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()
        self._closing: list[socket.socket] = []
        self._held: set[Held] = set()
        self._last: tuple[int, Handler] | None = None
        self._keeps_back = False
        self.watch(link.fileno(), select.EPOLLIN, self._on_link)
        self.watch(link.nudge_fileno(), select.EPOLLIN, self._on_question)
        self._tick()

    # ---- for the worker

    @property
    def held(self) -> int:
        """Clients held now."""
        return len(self._held)

    def hold(
        self,
        sock: socket.socket,
        order: RelayOrder,
        *,
        is_http11: bool,
        keeps_alive: bool,
        on_end: Callable[[bool], None],
    ) -> None:
        """Take a client's connection over, and ask for its model.

        Args:
            sock: a plain socket that does not block.
            order: what the app decided.
            is_http11: the client knows chunks.
            keeps_alive: the connection may carry another request.
            on_end: called once; True gives the connection back, False says that it is closed.
        """
        placeholder = None
        if order.streaming and self.options.send_loading_state:
            placeholder = Placeholder(remarks=self.options.loading_remarks, turn=next(self._count))
        exchange = Exchange(
            order, is_http11=is_http11, keeps_alive=keeps_alive, placeholder=placeholder
        )
        held = Held(self, sock, order, exchange, on_end)
        self._held.add(held)
        self.link.request(
            Ask(
                request=order.request,
                model=order.model,
                streaming=order.streaming,
                hold_ms=_ms(order.hold),
                patience_ms=_ms(order.patience),
                timeout_ms=_ms(order.timeout),
                conversation=order.conversation,
            ),
            held,
            self.now,
        )

    def linger(self, sock: socket.socket, on_closed: Callable[[], None]) -> None:
        """Close a client's connection so that it reads all that was sent, without waiting for it here."""
        Lingering(self, sock, on_closed).start(_LINGER)

    def watch_last(self, fd: int, handler: Handler) -> None:
        """Watch a descriptor whose handler may close others and make new ones: it has its turn after all others."""
        self.watch(fd, select.EPOLLIN, handler)
        self._last = (fd, self._handlers.pop(fd))

    def turn(self, timeout: float) -> None:
        """Wait for something to happen, at most this long in seconds, and deal with it."""
        events = self._epoll.poll(self._until_next(timeout), _EVENTS_AT_ONCE)
        self.now = time.monotonic()
        handlers = self._handlers
        last: Handler | None = None
        for fd, event in events:
            handler = handlers.get(fd)
            if handler is not None:
                try:
                    handler(event)
                except Exception:  # noqa: BLE001 - one client's misfortune must not end all the others
                    self._give_up(handler)
            elif self._last is not None and fd == self._last[0]:
                last = self._last[1]
        if last is not None:
            last(select.EPOLLIN)
        timers = self._timers
        while timers and timers[0][0] <= self.now:
            heapq.heappop(timers)[2]()
        self._keeps_back = self.link.flush(self.now)
        if self._closing:
            for sock in self._closing:
                sock.close()
            self._closing.clear()

    def close(self) -> None:
        """End: what is held is cut off."""
        for held in tuple(self._held):
            held.give_up()
        for handler in tuple(self._handlers.values()):
            owner = getattr(handler, "__self__", None)
            if isinstance(owner, Lingering):
                owner.give_up()
        self.link.close()
        for sock in self._closing:
            sock.close()
        self._epoll.close()

    # ---- for what it holds

    def watch(self, fd: int, events: int, handler: Handler) -> None:
        """Call `handler` with the events of a descriptor."""
        self._epoll.register(fd, events)
        self._handlers[fd] = handler

    def change(self, fd: int, events: int) -> None:
        """Watch other events of a descriptor."""
        self._epoll.modify(fd, events)

    def pause(self, fd: int) -> None:
        """Hear nothing of a descriptor until `resume`; with no events at all it would still report hang-ups."""
        self._epoll.unregister(fd)

    def resume(self, fd: int, events: int) -> None:
        """Hear of a paused descriptor again."""
        self._epoll.register(fd, events)

    def release(self, fd: int) -> None:
        """Watch a descriptor no more, which stays open."""
        del self._handlers[fd]
        self._epoll.unregister(fd)

    def discard(self, fd: int, sock: socket.socket) -> None:
        """Watch a socket no more, and close it when the turn ends."""
        self._handlers.pop(fd, None)
        self._closing.append(sock)

    def after(self, delay: Seconds, call: Callable[[], None]) -> None:
        """Call something later. It cannot be taken back: the callee looks whether it still matters."""
        heapq.heappush(self._timers, (self.now + delay, next(self._count), call))

    def forget(self, held: Held) -> None:
        """A client is held no more."""
        self._held.discard(held)

    # ---- inside

    def _until_next(self, timeout: float) -> float:
        if self._keeps_back:
            return _SOONEST
        if self._timers:
            timeout = min(timeout, max(0.0, self._timers[0][0] - time.monotonic()))
        return timeout

    @staticmethod
    def _give_up(handler: Handler) -> None:
        _log.exception("relay.broken")
        owner = getattr(handler, "__self__", None)
        if isinstance(owner, Held):
            owner.give_up()

    def _on_link(self, _event: int) -> None:
        self.link.read()

    def _on_question(self, _event: int) -> None:
        self.link.take_questions()

    def _tick(self) -> None:
        self.link.tick(self.now)
        for held in tuple(self._held):
            held.tick(self.now)
        self.after(_TICK, self._tick)


def _ms(seconds: Seconds | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)
