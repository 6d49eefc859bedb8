"""One client that the engine holds: its socket, its upstream's socket, and what lies between them.

The exchange says what the client is to read; this is the hand that moves the bytes. A client that reads slowly
stops the reads from its child, so no more than one read (64 KiB) and a rest of the same size is ever kept.
"""

import select
import socket
from collections.abc import Callable
from functools import partial

from qmsup.errors import Refusal
from qmsup.ids import RequestId
from qmsup.listener.asker import Asker
from qmsup.listener.outcome import Outcome
from qmsup.listener.relay import heir
from qmsup.listener.relay.account import Account
from qmsup.listener.relay.asks import granted_to
from qmsup.listener.relay.course import Course
from qmsup.listener.relay.home import Home
from qmsup.listener.relay.last_words import LOOK_AGAIN, LastWords
from qmsup.listener.relay.lingering import part
from qmsup.listener.relay.machine import Exchange
from qmsup.listener.relay.order import RelayOrder
from qmsup.listener.relay.outgoing import Outgoing
from qmsup.listener.relay.pause import Pause
from qmsup.listener.relay.phases import Ending, Phase
from qmsup.listener.relay.tunnel import Tunnel
from qmsup.listener.relay.upstream import Upstream
from qmsup.units import Seconds, seconds_from_ms
from qmsup.wire.listening import Ask, Granted

_IN, _RDHUP = select.EPOLLIN, select.EPOLLRDHUP
_GONE = _RDHUP | select.EPOLLHUP | select.EPOLLERR
CLIENT = _IN | _RDHUP
"""What a client's socket is watched for, held or idle: the same, so that epoll need not be told of each change."""
_BODY = Phase.BODY
_RETRY_PAUSE = Seconds(0.025)


class Held:
    """See the module. It is the link's Asker for its request.

    Attributes:
        asker: who asks in its place; None = itself.
        course: where its request goes.
    """

    __slots__ = (
        "_account", "_exchange", "_fd", "_give_back", "_home", "_is_over", "_is_reported", "_link",
        "_loop", "_out", "_pause", "_sock", "_tunnel", "_upstream", "asker", "course", "request",
    )  # fmt: skip

    def __init__(
        self,
        home: Home,
        sock: socket.socket,
        order: RelayOrder,
        exchange: Exchange,
        give_back: Callable[[bool], None],
    ) -> None:
        self.request: RequestId = order.request
        loop = home.loop
        self._account = Account(order, loop.now)
        self._home = home
        self._loop = loop
        self._link = home.link
        self._sock = sock
        self._fd = sock.fileno()
        self._exchange = exchange
        self.asker: Asker | None = None
        self.course = Course(order)
        self._give_back = give_back
        self._upstream: Upstream | None = None
        self._out = Outgoing(loop, sock)
        self._tunnel: Tunnel | None = None
        self._pause = Pause(loop)
        self._is_reported = False
        self._is_over = False
        loop.watch(self._fd, CLIENT, self._on_client)

    # ---- what the scheduler says

    def on_place(self, place: int, *, was_ready: bool | None) -> None:
        """It waits; 1 = next."""
        self._remark(self._exchange.placed(place, self._loop.now, was_ready=was_ready))

    def on_loading(self) -> None:
        """Its model is loading for it."""
        self._remark(self._exchange.loading(self._loop.now))

    def on_granted(self, grant: Granted) -> None:
        """The request may go to the child."""
        self._exchange.granted(grant)
        self._account.waited_ms = grant.waited_ms
        self._account.host = grant.host
        self.course.granted(grant, self._link)
        self._connect()

    def go_to_peer(self) -> None:
        """It is for a peer, which needs no grant."""
        order = self.course.order
        if order is not None and order.peer is not None and not self._is_over:
            self.on_granted(granted_to(order.peer, order))

    def on_refused(self, refusal: Refusal, _count_at: object = None) -> None:
        """There will be no grant."""
        self._is_reported = True
        self._say(self._exchange.refused(refusal))

    def on_cut(self, refusal: Refusal, *, had_lapsed: bool = False) -> None:
        """The lease is void."""
        if self._is_over:
            return
        waited = self._account.waited(self._loop.now)
        if had_lapsed and (ask := self.course.ask_anew(waited)) is not None:
            self._ask_again(ask)
        else:
            self._say(self._exchange.cut(refusal))

    # ---- what time does

    def tick(self, now: float) -> None:
        """About once a second."""
        if self._is_over:
            return
        if self._tunnel is not None:
            if self._tunnel.is_stalled(now):
                self._leave()
            return
        exchange = self._exchange
        if self._out.rest:
            if self._out.is_stalled(now):
                self._leave()
            return
        if exchange.phase is Phase.CONNECTING and self._upstream is not None:
            late = self._upstream.is_too_late(self.course.remote, now)
            if late:
                self._give_up_on(late)
                return
        self._remark(exchange.tick(now))

    def give_up(self) -> None:
        """The worker ends: cut the client off."""
        if not self._is_over:
            self._leave()

    # ---- the client's side

    def _on_client(self, event: int) -> None:
        if event & _GONE:
            self._leave()
            return
        if not self._out.rest:
            # Its next request, before the answer to this one: it can wait in the socket.
            self._loop.change(self._fd, _RDHUP)
            return
        try:
            if not self._out.go_on():
                return
        except OSError:
            self._leave()
            return
        if self._exchange.phase is Phase.DONE:
            self._end()
            return
        self._loop.change(self._fd, _RDHUP)
        if self._upstream is not None:
            self._upstream.go_on()

    def _remark(self, comment: bytes) -> None:
        # Who does not even read comments can do without the next.
        if comment and not self._out.rest:
            self._say(comment)

    def _say(self, data: bytes) -> None:
        """Send to the client, and see whether that was all."""
        if data and not self._send(data):
            return
        if self._exchange.phase is Phase.DONE:
            self._report()
            if not self._out.rest:
                self._end()

    def _send(self, data: bytes) -> bool:
        try:
            self._out.send(data)
        except OSError:
            self._leave()
            return False
        if self._out.rest and self._upstream is not None:
            self._upstream.pause()
        return True

    def _leave(self) -> None:
        """The client is gone: nobody needs what it asked for."""
        exchange = self._exchange
        if exchange.phase <= Phase.WAITING:
            self._is_reported = True
            self._link.leave(self.request)
        if exchange.phase is not Phase.DONE:
            exchange.client_left()
        self._report()
        self._over()
        self._loop.discard(self._fd, self._sock)
        self._give_back(False)  # noqa: FBT003 - whether the connection lives on

    def _end(self) -> None:
        ending = self._exchange.ending
        self._over()
        if ending is Ending.KEEP:
            self._give_back(True)  # noqa: FBT003 - whether the connection lives on
        else:
            is_whole = ending is Ending.CLOSE
            part(self._loop, self._sock, partial(self._give_back, False), is_whole=is_whole)  # noqa: FBT003

    def _over(self) -> None:
        self._is_over = True
        self.asker = None  # it has this one, and would keep it alive
        self._out.rest = b""
        sent = self._out.sent
        if self._tunnel is not None:
            sent += self._tunnel.stop()
        self._home.see_off(self, self._account.close(self._exchange, sent, self._loop.now))

    # ---- the upstream's side

    def _connect(self) -> None:
        sending = self.course.begin(is_plain=self._exchange.has_spoken)
        if sending is None:  # ended meanwhile
            return
        upstream = self._upstream = Upstream(self._loop, self, sending)
        upstream.begin(self._home.names, self.course)

    def on_sent(self) -> None:
        """The request is out, or no more of it is wanted."""
        self.course.sent()

    def on_answer(self, data: bytes) -> None:
        """Bytes of the answer have come; b"" = there will be no more."""
        exchange = self._exchange
        if data:
            if not self._account.first_at:
                self._account.first_at = self._loop.now
                self.course.drop()
            said = exchange.receive(data)
            if exchange.phase is _BODY:  # nearly all of a stream
                if said:
                    self._send(said)
            elif exchange.phase is Phase.TUNNEL:
                self._begin_tunnel(said)
            else:
                self._say(said)
        elif not self._goes_elsewhere():
            end = exchange.upstream_closed()
            if end is None:
                self._lose("its connection ended before the answer was complete")
            else:
                self._say(end)

    def on_lost(self, error: OSError) -> None:
        """The connection to the upstream could not be made, or broke."""
        course = self.course
        is_made = self._upstream is not None and self._upstream.is_made
        if isinstance(error, ConnectionRefusedError) and course.order is not None:
            self._close_upstream()
            if course.may_try_again:
                self._pause.begin(_RETRY_PAUSE, self._connect_again)
            else:
                self._give_up_on(f"{course.told} refuses connections", is_unheard=True)
            return
        said = "the connection broke" if is_made else f"no connection to {course.told}"
        self._give_up_on(f"{said} ({error.strerror or error})")

    def _begin_tunnel(self, said: bytes) -> None:
        assert self._upstream is not None, "it has just answered"
        assert self._upstream.sock is not None, "the same"
        sock = self._upstream.sock
        self._tunnel = Tunnel(self._loop, self._sock, sock, self._end_tunnel, self._leave)
        self._tunnel.send(said)

    def _end_tunnel(self, broken: str) -> None:
        self._say(self._exchange.tunnel_ended(broken))

    def _give_up_on(self, reason: str, *, is_unheard: bool = False) -> None:
        """The upstream is lost: another host answers, or the client is told."""
        if not self._goes_elsewhere(is_unheard=is_unheard):
            self._lose(reason)

    def _lose(self, reason: str) -> None:
        """No other host helps: the client is told, and what the child ended of if that comes to be known."""
        self._close_upstream()
        self._tell_loss(reason, LastWords(self._exchange.grant, self._loop.now))

    def _tell_loss(self, reason: str, words: LastWords) -> None:
        because = words.look(self._loop.now)
        if because is None:
            self._pause.begin(LOOK_AGAIN, partial(self._tell_loss_later, reason, words))
        else:
            self._say(self._exchange.upstream_lost(because or reason))

    def _tell_loss_later(self, reason: str, words: LastWords) -> None:
        if self._pause.is_over() and not self._is_over and self._exchange.phase is not Phase.DONE:
            self._tell_loss(reason, words)

    def _goes_elsewhere(self, *, is_unheard: bool = False) -> bool:
        """Ask again, if that makes sense, before an answer."""
        course = self.course
        if course.order is None or self._exchange.served or self._is_over:
            return False
        if course.heir is not None:
            self._close_upstream()
            self._pause.begin(heir.LOOK_AGAIN, self._look_for_heir)
            return course.heir.is_awaited(self._loop.now)
        if not course.leads_on(is_unheard=is_unheard):
            return False
        # What it was tried for meanwhile is no waiting: its client said how long it may wait.
        self._ask_again(course.ask_on(seconds_from_ms(self._account.waited_ms or 0)))
        return True

    def _ask_again(self, ask: Ask) -> None:
        """The grant is of no use: another one is wanted."""
        self._close_upstream()
        self._pause.drop()
        self._exchange.returned()
        self._link.done(self.request, Outcome.FAILED, served=False)
        self._link.request(ask, self.asker or self, self._loop.now)

    def _connect_again(self) -> None:
        if self._pause.is_over():
            self._connect()

    def _look_for_heir(self) -> None:
        course = self.course
        if not self._pause.is_over():
            return
        if course.order is not None and course.heir is not None and not course.heir.has_come():
            self._give_up_on("the scheduler process has ended, and no other came")
            return
        course.begin_anew()
        self._connect()

    def _close_upstream(self) -> None:
        if self._upstream is not None:
            self._upstream.close()
            self._upstream = None

    def _report(self) -> None:
        """The upstream's part is over: free it before the last bytes have reached the client."""
        self._close_upstream()
        self.course.drop()
        if not self._is_reported:
            self._is_reported = True
            exchange = self._exchange
            self._link.done(self.request, exchange.outcome, served=exchange.served)
