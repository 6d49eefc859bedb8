"""A connection that speaks another protocol from now on (a websocket): a plain pipe, both ways.

What is read from one side is kept until the other has taken it, and nothing more is read before: 64 KiB a way at most.
"""

import select
import socket
from collections.abc import Callable

from qmsup.listener.relay.loop import Loop
from qmsup.units import Seconds

_IN, _OUT, _RDHUP = select.EPOLLIN, select.EPOLLOUT, select.EPOLLRDHUP
_BROKEN = select.EPOLLHUP | select.EPOLLERR
_READ = 64 * 1024
STALLED_AFTER = Seconds(300.0)
"""A side that takes no byte for so long while some wait for it is gone."""


class _Side:
    """One end, and what waits to be sent to it.

    Attributes:
        always: what it is watched for, whatever else.
        watched: what it is watched for now; 0 = nothing is heard of it, not even its end.
    """

    __slots__ = ("always", "rest", "since", "sock", "watched")

    def __init__(self, sock: socket.socket, always: int) -> None:
        self.sock = sock
        self.always = always
        self.rest = b""
        self.since = 0.0
        self.watched = 0


class Tunnel:
    """Both sockets stay the caller's to close; their events are the tunnel's until `stop`."""

    def __init__(
        self,
        loop: Loop,
        client: socket.socket,
        upstream: socket.socket,
        on_end: Callable[[str], None],
        on_leave: Callable[[], None],
    ) -> None:
        """Begin. Both are watched already, and the client's end is looked for whatever happens.

        Args:
            loop: theirs.
            client: its socket.
            upstream: its socket.
            on_end: called once when a side has ended in order, and the other has taken all of it; or with how the
                upstream's connection broke.
            on_leave: called instead when the client's broke, or it left before it was sent everything.
        """
        self._sent = 0
        self._loop = loop
        self._client = _Side(client, _RDHUP)
        self._upstream = _Side(upstream, 0)
        self._on_end = on_end
        self._on_leave = on_leave
        self._is_over = False
        loop.watch(client.fileno(), _IN | _RDHUP, self._on_client)
        loop.watch(upstream.fileno(), _IN, self._on_upstream)
        self._client.watched = _IN | _RDHUP
        self._upstream.watched = _IN

    def send(self, data: bytes) -> None:
        """Send the client what came before the tunnel began."""
        self._give(self._client, data)
        self._go_on()

    def stop(self) -> int:
        """Do nothing any more, whatever comes; how many bytes the client has taken."""
        self._is_over = True
        return self._sent

    def is_stalled(self, now: float) -> bool:
        """Whether a side has taken nothing for so long that nobody can be there."""
        sides = (self._client, self._upstream)
        return any(side.rest and now - side.since > STALLED_AFTER for side in sides)

    def give_up(self) -> None:
        """Our own mistake: end this one."""
        self._leave()

    def _on_client(self, event: int) -> None:
        if event & _RDHUP and self._upstream.rest:
            self._leave()  # it left, and may have left more than the other side takes
            return
        self._on_event(self._client, self._upstream, event)

    def _on_upstream(self, event: int) -> None:
        self._on_event(self._upstream, self._client, event)

    def _on_event(self, side: _Side, other: _Side, event: int) -> None:
        if self._is_over or not side.watched:
            return
        if event & _OUT and side.rest:
            self._give(side, b"")
        if event & (_IN | _BROKEN) and not other.rest and not self._is_over:
            self._take(side, other)
        self._go_on()

    def _take(self, side: _Side, other: _Side) -> None:
        try:
            data = side.sock.recv(_READ)
        except BlockingIOError:
            return
        except OSError as error:
            self._break(side, error)
            return
        if data:
            self._give(other, data)
        else:
            self.stop()
            self._on_end("")

    def _give(self, side: _Side, data: bytes) -> None:
        data = side.rest + data
        try:
            taken = side.sock.send(data)
        except BlockingIOError:
            taken = 0
        except OSError as error:
            self._break(side, error)
            return
        if taken or not side.rest:
            side.since = self._loop.now
        side.rest = data[taken:]
        if side is self._client:
            self._sent += taken

    def _go_on(self) -> None:
        """Watch for what each side can do next."""
        if not self._is_over:
            self._watch(self._client, self._upstream)
            self._watch(self._upstream, self._client)

    def _watch(self, side: _Side, other: _Side) -> None:
        wanted = side.always
        if side.rest:
            wanted |= _OUT
        if not other.rest:
            wanted |= _IN
        if wanted == side.watched:
            return
        fd = side.sock.fileno()
        if not wanted:
            self._loop.pause(fd)
        elif not side.watched:
            self._loop.resume(fd, wanted)
        else:
            self._loop.change(fd, wanted)
        side.watched = wanted

    def _break(self, side: _Side, error: OSError) -> None:
        if self._is_over or side is self._client:
            self._leave()
        else:
            self.stop()
            self._on_end(f"the connection broke ({error.strerror})")

    def _leave(self) -> None:
        if not self._is_over:
            self.stop()
            self._on_leave()
