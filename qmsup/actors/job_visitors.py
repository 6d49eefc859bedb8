"""Everybody who came in by the door for jobs: how many, for how long, and who goes when it gets crowded.

A worker says all it has to say at once, and takes what it is answered. Whoever does not is sent away after a while, or
as soon as somebody else needs the place. A worker that was frozen so long comes again, and is answered what it missed.
"""

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from qmsup import open_files
from qmsup.actors.inbox import PollingInbox
from qmsup.actors.job_calls import Turn
from qmsup.actors.job_door import GoneError, NoRoomError, Visit, Visitor, let_in
from qmsup.errors import Code, Refusal, status_of
from qmsup.log import Log
from qmsup.units import Seconds

_MOST = 1024
"""At once. Each has a grant, or looks for a job that it has lost sight of."""
_WHOLE_WITHIN = Seconds(60.0)
"""A request, from its first byte to its last, and the same of an answer."""
_SHUT_FOR = Seconds(1.0)
"""Where this process has no descriptor left."""
_JSON = "application/json"
_BUG = Refusal(
    code=Code.INTERNAL_ERROR,
    message="a bug of qmsup met this request: see the log of the scheduler",
)

_log = Log("jobs")


class Visitors:
    """For the inbox's own thread alone; its actor does the Turns it gets."""

    def __init__(
        self,
        door: socket.socket,
        inbox: PollingInbox,
        *,
        serve: Callable[[Visitor, Visit], None],
        make_room: Callable[[], None],
    ) -> None:
        """Nobody is let in before `open`.

        Args:
            door: listens, and does not block.
            inbox: watches it, and everybody who comes.
            serve: takes whole requests, each to be answered by `answer` or `refuse`.
            make_room: parts with those who wait to be answered and have left, before somebody is turned away.
        """
        self._door = door
        self._inbox = inbox
        self._serve = serve
        self._make_room = make_room
        self._all: set[Visitor] = set()
        self._until: dict[Visitor, float] = {}
        """Of those who are heard or answered, who has been for longest first. Others wait for us."""
        self._opens_at: float | None = None

    def __len__(self) -> int:
        return len(self._all)

    def open(self) -> None:
        """Let them in from now on."""
        self._opens_at = None
        self._inbox.watch(self._door.fileno(), lambda: Turn(self._let_in))

    def move(self, door: socket.socket) -> None:
        """Let them in by another door; the former is to be closed after."""
        self._inbox.forget(self._door.fileno())
        self._door = door
        self.open()

    @property
    def due(self) -> Seconds | None:
        """When `work` is wanted next."""
        times = [self._until[next(iter(self._until))]] if self._until else []
        times += [] if self._opens_at is None else [self._opens_at]
        return min(map(Seconds, times), default=None)

    def work(self, now: Seconds) -> None:
        """Send away who took too long."""
        for visitor in [visitor for visitor, until in self._until.items() if now >= until]:
            _log.warning_of_a_peer("job.visitor_too_slow", after_s=_WHOLE_WITHIN)
            self.part(visitor)
        if self._opens_at is not None and now >= self._opens_at:
            self.open()

    def refuse(self, visitor: Visitor, refusal: Refusal) -> None:
        """Answer with an error."""
        kind = "invalid_request_error" if status_of(refusal.code) < 500 else "server_error"  # noqa: PLR2004 - HTTP's border
        error = {"message": refusal.message, "type": kind, "param": None, "code": refusal.code}
        body = json.dumps({"error": error}).encode()
        again = refusal.retry_after
        self.answer(visitor, status_of(refusal.code), _JSON, body, retry_after=again)

    def answer(
        self,
        visitor: Visitor,
        status: int,
        content_type: str,
        body: bytes,
        *,
        retry_after: Seconds | None = None,
    ) -> None:
        """Answer, and part once the answer is taken."""
        if visitor not in self._all:
            return  # sent away meanwhile
        visitor.answer(status, content_type, body, retry_after=retry_after)
        self._begin_to_wait(visitor)
        self._go_on(visitor)

    @contextmanager
    def remembering(self, visitor: Visitor) -> Iterator[None]:
        """Where this breaks, who waits for us is refused: it would wait for ever, and keep its place."""
        try:
            yield
        except Exception:
            if visitor not in self._until:
                self.refuse(visitor, _BUG)
            raise

    def part(self, visitor: Visitor) -> None:
        """Hang up. May be repeated."""
        if visitor not in self._all:
            return
        self._all.discard(visitor)
        self._until.pop(visitor, None)
        self._inbox.forget(visitor.fileno())
        visitor.close()

    def close(self) -> None:
        """Hang up on everybody."""
        for visitor in self._all:
            visitor.close()
        self._all.clear()
        self._until.clear()

    def _begin_to_wait(self, visitor: Visitor) -> None:
        self._until.pop(visitor, None)
        self._until[visitor] = time.monotonic() + _WHOLE_WITHIN

    def _let_in(self) -> None:
        try:
            visitor = let_in(self._door)
        except OSError as error:  # no descriptor is left, and whoever stands there stays there
            _log.warning_of_a_peer("job.nobody_let_in", because=error.strerror)
            if not self._send_one_away():
                self._inbox.forget(self._door.fileno())
                self._opens_at = time.monotonic() + _SHUT_FOR
            return
        if visitor is None:
            return
        most = open_files.at_most(_MOST)
        if len(self._all) >= most and not self._send_one_away():
            self._make_room()
            if len(self._all) >= most:
                _log.warning_of_a_peer("job.too_many_visitors", visitors=len(self._all))
                visitor.close()
                return
        self._all.add(visitor)
        self._begin_to_wait(visitor)
        turn = Turn(partial(self._read, visitor))
        self._inbox.watch(visitor.fileno(), lambda: turn, events=visitor.events)

    def _send_one_away(self) -> bool:
        """Who has been heard or answered for longest: one that is in earnest needs no second."""
        slowest = next(iter(self._until), None)
        if slowest is None:
            return False
        _log.warning_of_a_peer("job.visitor_sent_away", visitors=len(self._all))
        self.part(slowest)
        return True

    def _read(self, visitor: Visitor) -> None:
        if visitor not in self._all:
            return  # the readiness seen was of its number's next owner
        try:
            visit = visitor.receive()
        except GoneError:
            self.part(visitor)
            return
        except NoRoomError as error:
            self._inbox.forget(visitor.fileno())
            self.refuse(visitor, Refusal(code=Code.MODEL_UNAVAILABLE, message=str(error)))
            return
        if visit is not None:
            self._inbox.forget(visitor.fileno())
            del self._until[visitor]
            try:
                with self.remembering(visitor):
                    self._serve(visitor, visit)
            except Exception:
                visit.body.close()
                raise

    def _go_on(self, visitor: Visitor) -> None:
        if visitor not in self._all:
            return
        if visitor.go_on():
            self.part(visitor)
        else:
            turn = Turn(partial(self._go_on, visitor))
            self._inbox.watch(visitor.fileno(), lambda: turn, events=visitor.events)
