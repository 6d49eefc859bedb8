"""The connection of one request to where it goes: the request out, the answer in.

There is one for each try. It says what happened to its keeper, who says what that means.
"""

import contextlib
import select
import socket
from typing import Protocol

from qmsup.listener.relay.connecting import Way, too_late
from qmsup.listener.relay.course import Course
from qmsup.listener.relay.loop import Loop
from qmsup.listener.relay.names import Names
from qmsup.listener.relay.order import Remote
from qmsup.listener.relay.sending import Sending

_IN, _OUT = select.EPOLLIN, select.EPOLLOUT
_BROKEN = select.EPOLLHUP | select.EPOLLERR
_READABLE = _IN | _BROKEN
_READ = 64 * 1024
"""Below malloc's threshold for mapping memory: a larger buffer costs three system calls a read."""


class Keeper(Protocol):
    """Whose connection it is."""

    def on_sent(self) -> None:
        """The request is out, or no more of it is wanted."""
        ...

    def on_answer(self, data: bytes) -> None:
        """Bytes have come; b"" = there will be no more."""
        ...

    def on_lost(self, error: OSError) -> None:
        """It could not be made, or broke; see `is_made`. The keeper closes it."""
        ...

    def give_up(self) -> None:
        """Something failed here that nobody thought of."""
        ...


class Upstream:
    """See the module.

    Attributes:
        sock: the connection; None = it is not made yet, or closed.
    """

    __slots__ = (
        "_fd",
        "_is_paused",
        "_keeper",
        "_loop",
        "_sending",
        "_since",
        "_way",
        "sock",
    )

    def __init__(self, loop: Loop, keeper: Keeper, sending: Sending) -> None:
        """Nothing is connected.

        Args:
            loop: watches the connection.
            keeper: hears of it, until `close`.
            sending: the request.
        """
        self.sock: socket.socket | None = None
        self._loop = loop
        self._keeper = keeper
        self._sending: Sending | None = sending
        self._since = loop.now
        self._way: Way | None = None
        self._fd = -1
        self._is_paused = False

    def begin(self, names: Names, course: Course) -> None:
        """Connect, and send the request. What becomes of it may be told before this returns."""
        self._way = Way(self._loop, self._reached, self._lost, course.remote, turn=course.turn)
        self._way.begin(names, course.door)

    @property
    def is_made(self) -> bool:
        """Whether there was a connection."""
        return self.sock is not None

    def is_too_late(self, remote: Remote | None, now: float) -> str:
        """What it has not done in its time; "" = it still may."""
        return too_late(self._sending, remote, now - self._since)

    def pause(self) -> None:
        """Read nothing more: the client has not taken what was read."""
        if self.sock is not None and not self._is_paused:
            self._is_paused = True
            self._loop.pause(self._fd)

    def go_on(self) -> None:
        """Read on."""
        if self._is_paused:
            self._is_paused = False
            self._loop.resume(self._fd, self._wanted())

    def close(self) -> None:
        """It is of no use any more, and says nothing more."""
        self._sending = None
        if self._way is not None:
            self._way.give_up()
            self._way = None
        if self.sock is not None:
            self._loop.discard(self._fd, self.sock)
            self.sock = None

    def give_up(self) -> None:
        """Something failed here that nobody thought of."""
        self._keeper.give_up()

    def _reached(self, sock: socket.socket) -> None:
        self._way = None
        self.sock = sock
        self._fd = sock.fileno()
        try:
            # On one machine the connection is made by now, as a rule.
            self._send(sock, self._sending)
        except OSError as error:
            self._lost(error)
            return
        self._loop.watch(self._fd, self._wanted(), self._on_event)

    def _lost(self, error: OSError) -> None:
        self._keeper.on_lost(error)

    def _wanted(self) -> int:
        return _IN if self._sending is None else _IN | _OUT

    def _send(self, sock: socket.socket, sending: Sending | None) -> None:
        with contextlib.suppress(BlockingIOError):
            if sending is not None and sending.go_on(sock):
                self._sent()

    def _sent(self) -> None:
        self._sending = None
        self._since = self._loop.now
        self._keeper.on_sent()

    def _on_event(self, event: int) -> None:
        sock = self.sock
        if sock is None or self._is_paused:
            return
        sending = self._sending
        if sending is not None and event & (_OUT | _BROKEN):
            try:
                self._send(sock, sending)
            except ConnectionRefusedError as error:
                self._lost(error)
                return
            except OSError:
                # It wants no more of the request; its answer may be there all the same.
                self._sent()
            if self._sending is None:
                self._loop.change(self._fd, _IN)
        if event & _READABLE:
            try:
                data = sock.recv(_READ)
            except BlockingIOError:
                return
            except OSError as error:
                self._lost(error)
                return
            self._keeper.on_answer(data)
