"""Clients of `/api/events`: held in the loop, told what one thread of the worker sees.

A client that does not read is cut off: what it would miss it gets by coming again.
"""

import contextlib
import os
import select
import socket
from collections.abc import Callable
from functools import partial
from typing import assert_never

from qmsup.errors import Code, Refusal
from qmsup.listener import event_stream
from qmsup.listener.cors import cors_headers
from qmsup.listener.errors import error_response
from qmsup.listener.event_stream import Models
from qmsup.listener.feed_watch import Busy, Decided, FeedWatch, News, Over, Standing, Wrote
from qmsup.listener.relay.lingering import Lingering
from qmsup.listener.relay.loop import Loop
from qmsup.listener.relay.watch import Watch
from qmsup.units import Seconds

MOST = 64
"""Of one worker."""
_MOST_UNREAD = 4 * 1024 * 1024
_KEEP_ALIVE = Seconds(15.0)
_RETRY = Seconds(10.0)
_WATCHED = select.EPOLLIN | select.EPOLLRDHUP
_GONE = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR


class Onlookers:
    """All of a worker. For the loop's thread."""

    def __init__(self, loop: Loop, subscribe: Callable[[], object]) -> None:
        """Nobody looks on yet.

        Args:
            loop: holds the clients.
            subscribe: asks the scheduler `subscribe`; called in another thread.
        """
        self._loop = loop
        self._subscribe = subscribe
        self._clients: set[_Onlooker] = set()
        self._watch: FeedWatch | None = None
        self._ending: list[FeedWatch] = []
        self._nudge_fd = -1
        self._is_keeping_alive = False

    def __len__(self) -> int:
        return len(self._clients)

    def hold(self, sock: socket.socket, watch: Watch, give_back: Callable[[bool], None]) -> None:
        """Tell a client how things stand, and then what happens.

        Args:
            sock: does not block.
            watch: what the app decided.
            give_back: called once, with False: the connection is closed.
        """
        if len(self._clients) >= MOST:
            self._refuse(sock, watch, give_back)
            return
        client = _Onlooker(self._loop, sock, watch.models, partial(self._forget, give_back))
        self._clients.add(client)
        self._begin()
        client.say(_head(watch) + watch.so_far)

    def dismiss(self) -> None:
        """Send all clients away."""
        for client in tuple(self._clients):
            client.leave()

    def end(self) -> None:
        """Send all clients away; `close` follows."""
        self.dismiss()
        if self._nudge_fd >= 0:
            self._loop.release(self._nudge_fd)

    def close(self) -> None:
        """Wait for the thread, which may have asked something: nobody answers any more by now."""
        for watch in self._ending:
            watch.join()
        if self._nudge_fd >= 0:
            os.close(self._nudge_fd)
            self._nudge_fd = -1

    def _refuse(self, sock: socket.socket, watch: Watch, give_back: Callable[[bool], None]) -> None:
        message = f"{MOST} clients look on at this worker already: close one, or ask /running"
        refusal = Refusal(code=Code.QUEUE_FULL, message=message, retry_after=_RETRY)
        with contextlib.suppress(OSError):  # it has gone already
            sock.send(
                error_response(refusal, origin=watch.origin, request_id=watch.request, close=True)
            )
        Lingering(self._loop, sock, lambda: give_back(False)).start()  # noqa: FBT003 - whether it lives on

    def _begin(self) -> None:
        if self._nudge_fd < 0:
            self._nudge_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._loop.watch(self._nudge_fd, select.EPOLLIN, self._on_news)
        if self._watch is None:
            self._watch = FeedWatch(self._subscribe, partial(os.eventfd_write, self._nudge_fd, 1))
        self._watch.models = frozenset().union(*(client.models for client in self._clients))
        if not self._is_keeping_alive:
            self._is_keeping_alive = True
            self._loop.after(_KEEP_ALIVE, self._keep_alive)

    def _forget(self, give_back: Callable[[bool], None], client: "_Onlooker") -> None:
        self._clients.discard(client)
        if not self._clients and self._watch is not None:
            self._watch.end()
            self._ending = [w for w in self._ending if w.is_alive] + [self._watch]
            self._watch = None
        give_back(False)  # noqa: FBT003 - whether the connection lives on

    def _keep_alive(self) -> None:
        self._is_keeping_alive = bool(self._clients)
        if self._clients:
            self._loop.after(_KEEP_ALIVE, self._keep_alive)
        for client in tuple(self._clients):
            client.say(event_stream.KEEP_ALIVE)

    def _on_news(self, _event: int) -> None:
        os.eventfd_read(self._nudge_fd)
        if self._watch is None:
            return
        for news in self._watch.take():
            said: dict[int, bytes] = {}  # one port has one catalogue, or two while a reload goes on
            for client in tuple(self._clients):
                key = id(client.models)
                if key not in said:
                    said[key] = _event_of(news, client.models)
                client.say(said[key])


class _Onlooker:
    """One client."""

    __slots__ = ("_fd", "_is_over", "_loop", "_on_closed", "_rest", "_sock", "models")

    def __init__(
        self,
        loop: Loop,
        sock: socket.socket,
        models: Models,
        on_closed: "Callable[[_Onlooker], None]",
    ) -> None:
        self.models = models
        self._loop = loop
        self._sock = sock
        self._fd = sock.fileno()
        self._on_closed = on_closed
        self._rest = b""
        self._is_over = False
        loop.watch(self._fd, _WATCHED, self._on_event)

    def say(self, data: bytes) -> None:
        """Send, as far as it reads."""
        if self._is_over or not data:
            return
        is_waiting = bool(self._rest)
        self._rest += data
        if len(self._rest) > _MOST_UNREAD:
            self.leave()
        elif not is_waiting:
            self._send()

    def leave(self) -> None:
        """Close the connection."""
        if not self._is_over:
            self._is_over = True
            self._rest = b""
            self._loop.discard(self._fd, self._sock)
            self._on_closed(self)

    def _send(self) -> None:
        try:
            taken = self._sock.send(self._rest)
        except BlockingIOError:
            taken = 0
        except OSError:
            self.leave()
            return
        self._rest = self._rest[taken:]
        self._loop.change(self._fd, select.EPOLLOUT | _GONE if self._rest else _GONE)

    def _on_event(self, event: int) -> None:
        if event & _GONE:
            self.leave()
        elif event & select.EPOLLOUT:
            self._send()
        else:  # it has more to say, which nobody is going to read
            self._loop.change(self._fd, _GONE)


def _event_of(news: News, models: Models) -> bytes:
    match news:
        case Standing(states=states):
            return event_stream.model_status(models, states)
        case Busy(counts=counts):
            return event_stream.in_flight(models, counts)
        case Over(rows=rows):
            return event_stream.requests_over(models, rows)
        case Decided(at=at, body=body):
            return event_stream.decided(models, at, body)
        case Wrote(model=model, lines=lines):
            return event_stream.models_wrote(model, lines) if model in models else b""
        case _:
            assert_never(news)


def _head(watch: Watch) -> bytes:
    lines = [
        "HTTP/1.1 200 OK",
        "Content-Type: text/event-stream",
        "Cache-Control: no-cache",
        "X-Accel-Buffering: no",
        "X-Content-Type-Options: nosniff",
        f"X-QM-Request-Id: {watch.request}",
        *(f"{name}: {value}" for name, value in cors_headers(watch.origin)),
        "Connection: close",
        "",
        "",
    ]
    return "\r\n".join(lines).encode("latin-1")
