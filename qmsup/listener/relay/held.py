"""One client that the engine holds: its socket, its upstream's socket, and what lies between them.

The exchange says what the client is to read; this is the hand that moves the bytes. A client that reads slowly
stops the reads from its child, so no more than one read (64 KiB) and a rest of the same size is ever kept.
"""

import contextlib
import select
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from qmsup.errors import Refusal
from qmsup.ids import RequestId
from qmsup.listener.link import Link
from qmsup.listener.relay import account
from qmsup.listener.relay.account import Account
from qmsup.listener.relay.lingering import Lingering
from qmsup.listener.relay.loop import Loop
from qmsup.listener.relay.machine import Ending, Exchange, Phase
from qmsup.listener.relay.order import RelayOrder
from qmsup.listener.relay.sending import Sending
from qmsup.units import Seconds
from qmsup.wire.listening import Granted

_IN, _OUT, _RDHUP = select.EPOLLIN, select.EPOLLOUT, select.EPOLLRDHUP
_GONE = _RDHUP | select.EPOLLHUP | select.EPOLLERR
CLIENT = _IN | _RDHUP
"""What a client's socket is watched for, held or idle: the same, so that epoll need not be told of each change."""
_BROKEN = select.EPOLLHUP | select.EPOLLERR
_STREAM = int(socket.SOCK_STREAM) | int(socket.SOCK_NONBLOCK)
_READ = 64 * 1024
"""Below malloc's threshold for mapping memory: a larger buffer costs three system calls a read."""
_TRIES = 2
_RETRY_PAUSE = Seconds(0.025)
_CONNECT_WITHIN = Seconds(10.0)
_STALLED_AFTER = Seconds(300.0)
"""A client that takes no byte for so long while some wait for it is gone, whatever its connection says."""
_RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """What all clients of a worker share.

    Attributes:
        held: every client that is held; one takes itself out.
    """

    loop: Loop
    link: Link
    held: set["Held"]
    access_log: bool


class Held:
    """See the module. It is the link's Asker for its request."""

    __slots__ = (
        "_account",
        "_exchange",
        "_fd",
        "_give_back",
        "_home",
        "_is_over",
        "_is_paused",
        "_is_reported",
        "_link",
        "_loop",
        "_order",
        "_rest",
        "_sending",
        "_sent",
        "_sock",
        "_tries",
        "_upstream",
        "_upstream_fd",
        "_waits_since",
        "_where",
        "request",
    )

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
        self._order: RelayOrder | None = order
        self._give_back = give_back
        self._upstream: socket.socket | None = None
        self._upstream_fd = -1
        self._sending: Sending | None = None
        self._where = ""
        self._rest = b""
        self._waits_since = loop.now
        self._sent = 0
        self._tries = 0
        self._is_paused = False
        self._is_reported = False
        self._is_over = False
        loop.watch(self._fd, CLIENT, self._on_client)

    # ---- what the scheduler says

    def on_place(self, place: int) -> None:
        """It waits; 1 = next."""
        self._remark(self._exchange.placed(place, self._loop.now))

    def on_loading(self) -> None:
        """Its model is loading for it."""
        self._remark(self._exchange.loading(self._loop.now))

    def on_granted(self, grant: Granted) -> None:
        """The request may go to the child."""
        self._exchange.granted(grant)
        self._account.waited_ms = grant.waited_ms
        self._where = grant.upstream
        self._connect()

    def on_refused(self, refusal: Refusal) -> None:
        """There will be no grant."""
        self._is_reported = True
        self._say(self._exchange.refused(refusal))

    def on_cut(self, refusal: Refusal) -> None:
        """The lease is void."""
        if not self._is_over:
            self._say(self._exchange.cut(refusal))

    # ---- what time does

    def tick(self, now: float) -> None:
        """About once a second."""
        if self._is_over:
            return
        exchange = self._exchange
        if self._rest:
            if now - self._waits_since > _STALLED_AFTER:
                self._leave()
            return
        if (
            exchange.phase is Phase.CONNECTING
            and self._sending is not None
            and self._upstream is not None
            and now - self._waits_since > _CONNECT_WITHIN
            and not self._sending.has_begun
        ):
            self._say(exchange.upstream_lost(f"no connection within {_CONNECT_WITHIN:g} s"))
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
        if not self._rest:
            # Its next request, before the answer to this one: it can wait in the socket.
            self._loop.change(self._fd, _RDHUP)
            return
        try:
            taken = self._sock.send(self._rest)
        except BlockingIOError:
            return
        except OSError:
            self._leave()
            return
        self._sent += taken
        self._waits_since = self._loop.now
        self._rest = self._rest[taken:]
        if self._rest:
            return
        if self._exchange.phase is Phase.DONE:
            self._end()
            return
        self._loop.change(self._fd, _RDHUP)
        if self._is_paused:
            self._is_paused = False
            self._loop.resume(self._upstream_fd, self._wanted())

    def _remark(self, comment: bytes) -> None:
        # A client that does not even read comments can do without the next one.
        if comment and not self._rest:
            self._say(comment)

    def _say(self, data: bytes) -> None:
        """Send to the client, and see whether that was all."""
        if data and not self._send(data):
            return
        if self._exchange.phase is Phase.DONE:
            self._report()
            if not self._rest:
                self._end()

    def _send(self, data: bytes) -> bool:
        if self._rest:
            self._rest += data
            return True
        try:
            taken = self._sock.send(data)
        except BlockingIOError:
            taken = 0
        except OSError:
            self._leave()
            return False
        self._sent += taken
        if taken < len(data):
            self._rest = data[taken:]
            self._waits_since = self._loop.now
            self._loop.change(self._fd, _OUT | _RDHUP)
            if self._upstream is not None and not self._is_paused:
                self._is_paused = True
                self._loop.pause(self._upstream_fd)
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
        elif ending is Ending.CLOSE:
            Lingering(self._loop, self._sock, lambda: self._give_back(False)).start()  # noqa: FBT003
        else:
            with contextlib.suppress(OSError):
                self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._loop.discard(self._fd, self._sock)
            self._give_back(False)  # noqa: FBT003

    def _over(self) -> None:
        self._is_over = True
        self._rest = b""
        self._home.held.discard(self)
        told = self._account.close(self._exchange, self._sent, self._loop.now)
        self._link.activity.add(told)
        if self._home.access_log:
            account.log(told)

    # ---- the upstream's side

    def _connect(self) -> None:
        order = self._order
        if order is None:  # ended before it was tried again
            return
        self._tries += 1
        self._waits_since = self._loop.now
        sending = Sending(order.head + b"Host: %b\r\n\r\n" % self._where.encode(), order.body)
        try:
            family, address = _address_of(order.via or self._where)
            upstream = socket.socket(family, _STREAM)
        except (OSError, ValueError) as error:
            self._say(self._exchange.upstream_lost(f"no connection to {self._where}: {error}"))
            return
        self._upstream = upstream
        self._upstream_fd = upstream.fileno()
        self._sending = sending
        try:
            if family is not socket.AF_UNIX:
                upstream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                upstream.connect_ex(address)
            elif upstream.connect_ex(address):
                raise ConnectionRefusedError  # the scheduler process is gone, or just coming
            # On one machine the connection is made by now, as a rule.
            self._go_on_sending(upstream, sending)
        except OSError as error:
            self._lose(error)
            return
        self._loop.watch(self._upstream_fd, self._wanted(), self._on_upstream)

    def _wanted(self) -> int:
        return _IN if self._sending is None else _IN | _OUT

    def _go_on_sending(self, upstream: socket.socket, sending: Sending) -> None:
        with contextlib.suppress(BlockingIOError):
            if sending.go_on(upstream):
                self._sending = None
                self._drop_order()

    def _on_upstream(self, event: int) -> None:
        upstream = self._upstream
        if upstream is None or self._is_paused:
            return
        if self._sending is not None and event & (_OUT | _BROKEN):
            try:
                self._go_on_sending(upstream, self._sending)
            except ConnectionRefusedError as error:
                self._lose(error)
                return
            except OSError:
                # It wants no more of the request; its answer may be there all the same.
                self._sending = None
                self._drop_order()
            if self._sending is None:
                self._loop.change(self._upstream_fd, _IN)
        if event & (_IN | _BROKEN):
            self._read(upstream)

    def _read(self, upstream: socket.socket) -> None:
        try:
            data = upstream.recv(_READ)
        except BlockingIOError:
            return
        except OSError as error:
            self._lose(error)
            return
        if not self._account.first_at:
            self._account.first_at = self._loop.now
        exchange = self._exchange
        self._say(exchange.receive(data) if data else exchange.upstream_closed())

    def _lose(self, error: OSError) -> None:
        """The connection to the upstream could not be made, or broke."""
        if isinstance(error, ConnectionRefusedError) and self._order is not None:
            self._close_upstream()
            if self._tries < _TRIES:
                self._loop.after(_RETRY_PAUSE, self._connect)
                return
            self._say(self._exchange.upstream_lost(f"{self._where} refuses connections"))
            return
        self._say(self._exchange.upstream_lost(f"the connection broke ({error.strerror})"))

    def _close_upstream(self) -> None:
        if self._upstream is not None:
            self._loop.discard(self._upstream_fd, self._upstream)
            self._upstream = None
            self._sending = None
            self._is_paused = False

    def _drop_order(self) -> None:
        """The request is not needed any more, nor the file that may hold its body."""
        if self._order is not None:
            if not isinstance(self._order.body, bytes):
                self._order.body.close()
            self._order = None

    def _report(self) -> None:
        """The upstream's part is over: free it before the last bytes have reached the client."""
        self._close_upstream()
        self._drop_order()
        if not self._is_reported:
            self._is_reported = True
            exchange = self._exchange
            self._link.done(self.request, exchange.outcome, served=exchange.served)


@lru_cache(maxsize=256)
def _address_of(where: str) -> tuple[socket.AddressFamily, tuple[str | int | bytes, ...] | str]:
    """`host:port`, or the path of a Unix socket, as a socket address; a name is looked up once."""
    if where.startswith("/"):
        return socket.AF_UNIX, where
    host, _, port = where.rpartition(":")
    found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    family, _, _, _, address = found[0]
    return family, address
