"""Holds every relayed client of a worker: no thread waits for one, none streams to one.

The loop knows descriptors and time; `held.Held` moves one client's bytes; `machine.Exchange` decides what they are.
gunicorn's own poller is one descriptor among the others.
"""

import itertools
import select
import socket
from collections.abc import Callable
from dataclasses import dataclass

from typing_extensions import override

from qmsup.listener.link import Link
from qmsup.listener.placeholder import Placeholder
from qmsup.listener.relay.asks import ask_of
from qmsup.listener.relay.counting import Counted, Desk
from qmsup.listener.relay.errands import Errands
from qmsup.listener.relay.held import Held
from qmsup.listener.relay.home import Guest, Home
from qmsup.listener.relay.lingering import Lingering
from qmsup.listener.relay.loop import Loop
from qmsup.listener.relay.machine import Exchange
from qmsup.listener.relay.names import Names
from qmsup.listener.relay.onlookers import Onlookers
from qmsup.listener.relay.tunnel import Tunnel
from qmsup.listener.relay.upstream import Upstream
from qmsup.listener.relay.watch import Order, Watch
from qmsup.log import Log
from qmsup.units import Seconds

_TICK = Seconds(1.0)
_SUBSCRIBES_WITHIN = Seconds(5.0)

_log = Log("relay")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayOptions:
    """What the configuration says about relaying."""

    send_loading_state: bool = False
    loading_remarks: bool = True
    access_log: bool = True


class Engine(Loop):
    """One per worker process."""

    def __init__(self, link: Link, options: RelayOptions) -> None:
        super().__init__()
        self._link = link
        self._options = options
        self._held: set[Guest] = set()
        self._onlookers = Onlookers(self, lambda: link.ask("subscribe", {}, _SUBSCRIBES_WITHIN))
        self._errands = Errands(self)
        self._desk = Desk(loop=self, link=link, errands=self._errands, held=self._held)
        names = Names(self, self._errands)
        self._homes = {
            logs: Home(loop=self, link=link, names=names, held=self._held, access_log=logs)
            for logs in (False, True)
        }
        self._turns_of_remarks = itertools.count()
        self.watch(link.fileno(), select.EPOLLIN, lambda _event: link.read())
        self.watch(link.nudge_fileno(), select.EPOLLIN, lambda _event: link.take_questions())
        self._tick()

    @property
    def held(self) -> int:
        """Clients held now."""
        return len(self._held)

    def hold(
        self,
        sock: socket.socket,
        order: Order,
        *,
        is_http11: bool,
        keeps_alive: bool,
        give_back: Callable[[bool], None],
        options: RelayOptions | None = None,
    ) -> None:
        """Take a client's connection over, and ask for its model if it wants one.

        Args:
            sock: a plain socket that does not block.
            order: what the app decided.
            is_http11: the client knows chunks.
            keeps_alive: the connection may carry another request.
            give_back: called once; True gives the connection back, still watched: watch or release it. False says
                that it is closed.
            options: what counts for this one; None = what the engine was made with.
        """
        if isinstance(order, Watch):
            self._onlookers.hold(sock, order, give_back)
            return
        options = options or self._options
        placeholder = None
        if order.streaming and options.send_loading_state and not order.quiet:
            placeholder = Placeholder(
                remarks=options.loading_remarks, turn=next(self._turns_of_remarks)
            )
        exchange = Exchange(
            order, is_http11=is_http11, keeps_alive=keeps_alive, placeholder=placeholder
        )
        held = Held(self._homes[options.access_log], sock, order, exchange, give_back)
        self._held.add(held)
        if order.peer is None:
            is_guarded = order.way is not None and order.way.tokens
            if is_guarded:
                held.asker = Counted(self._desk, held, order)
            self._link.request(ask_of(order), held.asker or held, self.now)
        else:
            # Not before the caller is done with it: the end of a request gives its connection back.
            self.after(Seconds(0.0), held.go_to_peer)

    def dismiss(self) -> None:
        """Send away who only looks on: they would stay for ever."""
        self._onlookers.dismiss()

    def linger(self, sock: socket.socket, on_closed: Callable[[], None]) -> None:
        """Close a client's connection so that it reads all that was sent, without waiting for it here."""
        Lingering(self, sock, on_closed).start()

    @override
    def on_turn(self) -> None:
        self._keeps_back_until = self._link.flush(self.now)

    @override
    def on_fault(self, handler: Callable[..., None]) -> None:
        _log.exception("relay.broken")
        owner = getattr(handler, "__self__", None)
        if isinstance(owner, Held | Tunnel | Upstream):
            owner.give_up()

    @override
    def close(self) -> None:
        """End: what is held is cut off, and the link closed."""
        for held in tuple(self._held):
            held.give_up()
        self._onlookers.end()
        for handler in tuple(self._handlers.values()):
            owner = getattr(handler, "__self__", None)
            if isinstance(owner, Lingering):
                owner.give_up()
        self._link.close()
        self._onlookers.close()
        self._errands.close()
        super().close()

    def _tick(self) -> None:
        self.after(until_tick(self.now), self._tick)
        self._link.tick(self.now)
        for held in tuple(self._held):
            try:
                held.tick(self.now)
            except Exception:  # noqa: BLE001 - the others have their turn all the same
                self.on_fault(held.tick)


def until_tick(now: float) -> Seconds:
    """To the next tick, which comes at the same moment in all workers: what their beats wake up, they wake once."""
    left = _TICK - now % _TICK
    return Seconds(left if left > _TICK / 2 else left + _TICK)
