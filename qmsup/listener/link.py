"""A worker's one connection to the scheduler: asks for models, keeps the leases, carries control questions.

One DEALER socket, made after the fork and used by the worker's loop alone. The loop polls `fileno` and
`nudge_fileno`, calls `read` when either is ready, `flush` at the end of each turn and `tick` about once a second.
`ask` alone is for other threads.

Delivery is at most once and the scheduler may be replaced at any time, so: an ask is repeated with the same id until
it is answered, a new scheduler is greeted with everything that waits and is held, and a grant that nobody waits for
is declined.
"""

import os
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import assert_never

from qmsup.errors import Code, PeerError, Refusal
from qmsup.ids import Epoch, ListenerName, RequestId, WorkerId
from qmsup.listener.activity import Activity
from qmsup.listener.asker import Asker, CountAt
from qmsup.listener.leases import Leases
from qmsup.listener.outbox import Outbox
from qmsup.listener.promises import Promises, grant
from qmsup.listener.questions import Questions, code_of
from qmsup.listener.unanswered import FIRST_REPEAT, Unanswered
from qmsup.log import Log
from qmsup.transport.dealer import DealerSocket
from qmsup.units import Seconds
from qmsup.wire import codec, listening
from qmsup.wire.listening import (
    Accepted,
    Ask,
    Beat,
    Declined,
    Done,
    Granted,
    Hello,
    Lasts,
    Leave,
)

_ACCEPTS_WITHIN = Seconds(0.02)
"""The scheduler waits for seconds for a lease to be accepted. Most small requests are done before that: then the
word of their end says both, and the scheduler has an event less to deal with."""
_FROZEN = Seconds(1.5)
"""The scheduler is heard every second. Who has not looked for so long was frozen, and an offer may have lapsed."""
_NEVER = float("inf")
_MAX_NAME = 80
_RETRY_AFTER = Seconds(2.0)

_log = Log("link")


class Link:
    """See the module."""

    def __init__(self, listener: ListenerName, *, endpoint: str, grace: Seconds) -> None:
        """Connect, whether or not there is a scheduler, and greet it.

        Args:
            listener: whose worker this is.
            endpoint: the scheduler's address.
            grace: how long a new request waits for an absent scheduler.
        """
        name = listener[:_MAX_NAME]
        self.worker = WorkerId(f"{name}-{os.getpid()}-{secrets.token_hex(4)}")
        self._listener = listener
        self.grace = grace
        """How long a new request waits for an absent scheduler."""
        self._dealer = DealerSocket(endpoint, self.worker.encode())
        self._open: dict[RequestId, Unanswered] = {}
        self._leases: Leases[Asker] = Leases()
        self._promises = Promises()
        self._questions = Questions()
        self.activity = Activity(listener)
        """Of requests that are over; told with the next beat."""
        self._outbox = Outbox()
        self._unaccepted: dict[RequestId, None] = {}
        """Leases that the scheduler has not been told are in use; in order."""
        self._accept_at = 0.0
        self._read_at = time.monotonic()
        self._thawed_at = 0.0
        self.epoch: Epoch | None = None
        self._complaint = ""
        self._configured = ""
        self.on_configured: Callable[[str, Path], None] = _ignore
        """Called in the loop's thread when the scheduler tells of a version of the configuration, and where it lies."""
        self._greet()

    # ---- for the loop

    @property
    def waiting(self) -> int:
        """Requests without a grant."""
        return len(self._open)

    @property
    def held(self) -> int:
        """Live leases, kept ones among them."""
        return len(self._leases)

    def fileno(self) -> int:
        """The socket's descriptor; edge-triggered."""
        return self._dealer.fileno()

    def nudge_fileno(self) -> int:
        """Readable when another thread asked something."""
        return self._questions.fileno()

    def read(self) -> None:
        """Deal with everything the scheduler has sent."""
        now = time.monotonic()
        if now - self._read_at > _FROZEN:
            self._thawed_at = now
        self._read_at = now
        for frame in self._dealer.receive():
            try:
                self._take(frame)
            except PeerError as error:
                _log.warning("link.unreadable", because=str(error))
            except Exception:  # noqa: BLE001 - one request's misfortune must not end all the others
                _log.exception("link.broken")

    def take_questions(self) -> None:
        """Send what other threads asked, after all that has happened: an answer may count it."""
        self._outbox.add_in_time(self.activity.take())
        for frame in self._questions.take_new():
            self._outbox.add(frame)

    def flush(self, now: float) -> float | None:
        """Send what the turn has gathered, as one multipart.

        Returns:
            Until when something is kept back at most, to travel with what comes next; None = nothing is.
        """
        self._promises.keep()
        if now >= self._leases.due:
            self._give_back(self._leases.overdue(now))
        if self._unaccepted:
            if not self._accept_at:
                self._accept_at = now + _ACCEPTS_WITHIN
            elif now >= self._accept_at:
                self._accept()
        while self._outbox:
            if (until := self._outbox.kept_until(now)) is not None:
                return min(until, self._leases.due)
            self._dealer.send(self._outbox.take(now))
            self.read()  # sending may swallow the descriptor's one notice
            self._promises.keep()
        due = self._accept_at if self._unaccepted else _NEVER
        due = min(due, self._leases.due)
        return None if due == _NEVER else due

    def tick(self, now: float) -> None:
        """Beat; repeat what is unanswered; give up what has waited for an absent scheduler too long."""
        self._accept()  # first: the beat counts them among the held
        beat = Beat(waiting=len(self._open), held=len(self._leases), configured=self._configured)
        self._outbox.add(codec.encode(beat))
        self._outbox.add_in_time(self.activity.take())
        late: list[Unanswered] = []
        for entry in self._open.values():
            if entry.is_given_up(now, self.grace):
                late.append(entry)
            elif entry.is_to_be_repeated(now):
                self._outbox.add(codec.encode(entry.said_again(now)))
        for entry in late:
            self.leave(entry.ask.request)
            entry.asker.on_refused(self._absent())
        for frame in self._questions.take_late(now):
            self._outbox.add(frame)

    def request(self, ask: Ask, asker: Asker, now: float) -> None:
        """Ask for a model; `asker` hears what becomes of it."""
        if (again := self._leases.use(ask, asker, now)) is not None:
            self._promises.make(asker, again)
            return
        self._open[ask.request] = Unanswered(ask, asker, now, now + FIRST_REPEAT)
        self._outbox.add(codec.encode(ask))

    def leave(self, request: RequestId) -> None:
        """A waiting request is no more. A grant that crosses this is declined."""
        if self._open.pop(request, None) is not None:
            self._outbox.add(codec.encode(Leave(request=request)))
        elif self._promises.drop(request) is not None:
            self._leases.leave(request)

    def done(self, request: RequestId, outcome: str, *, served: bool) -> None:
        """The work under a lease ended."""
        self._promises.drop(request)
        done = self._leases.end(request, outcome, served=served, now=time.monotonic())
        if done is not None:
            # May ride with what comes next, unless somebody here waits, perhaps for just this place.
            self._give_back((done,))
            if self._open:
                self._outbox.hurry()

    def close(self) -> None:
        """Give back what is only kept, send what is left, and close; threads that ask find no scheduler."""
        self._recall()
        self._outbox.add_in_time(self.activity.take())
        self._dealer.send(self._outbox.take(time.monotonic()))
        self._dealer.close()
        self._questions.close()

    # ---- for other threads

    def note(self, finished: listening.Finished) -> None:
        """Tell of a request that is over, with the next beat."""
        self.activity.add(finished)

    def ask(self, verb: str, args: Mapping[str, object], timeout: Seconds) -> object:
        """Ask a control question and wait for the answer's body; see `Questions.ask`."""
        return self._questions.ask(verb, args, timeout)

    # ---- inside

    def _give_back(self, over: Iterable[Done | Lasts]) -> None:
        for told in over:
            self._unaccepted.pop(told.request, None)
            self._outbox.add_in_time((codec.encode(told),))

    def _recall(self) -> None:
        over = self._leases.recall()
        self._give_back(over)
        if over:
            self._outbox.hurry()

    def _accept(self) -> None:
        self._outbox.add_in_time(
            codec.encode(Accepted(request=request)) for request in self._unaccepted
        )
        self._unaccepted.clear()
        self._accept_at = 0.0

    def _greet(self) -> None:
        now = time.monotonic()
        self._outbox.add(
            codec.encode(
                Hello(
                    version=listening.VERSION,
                    worker=self.worker,
                    listener=self._listener,
                    pid=os.getpid(),
                    leases=self._leases.holdings(),
                    waiting=tuple(entry.told(now) for entry in self._open.values()),
                    lends=True,
                )
            )
        )
        self._recall()  # after that: who does not know this worker would not hear it

    def _take(self, frame: bytes) -> None:
        if codec.is_control(frame):
            self._questions.answer(codec.decode_reply(frame))
            return
        message = codec.decode_from_scheduler(frame)
        match message:
            case Granted():
                self._take_grant(message)
            case listening.Moved():
                self._take_places(message)
            case listening.Loading(request=request):
                if (entry := self._heard(request)) is not None:
                    entry.asker.on_loading()
            case listening.Refused() | listening.CutOff():
                self._take_refusal(message)
            case _:
                self._take_of_worker(message)

    def _take_of_worker(
        self,
        message: listening.Welcome | listening.Configured | listening.Unwelcome | listening.Recall,
    ) -> None:
        """What is said to the worker, not to a request of its."""
        match message:
            case listening.Welcome(epoch=epoch):
                self._take_epoch(epoch)
            case listening.Recall():
                self._recall()
            case listening.Configured(version=version, path=path):
                self._take_version(version, Path(path))
            case listening.Unwelcome(reason=reason, greet=greet):
                self._take_unwelcome(reason, greet=greet)
            case _:
                assert_never(message)

    def _take_grant(self, granted: Granted) -> None:
        request, now = granted.request, time.monotonic()
        entry = self._open.get(request)
        if entry is None:
            if request in self._leases:  # repeated, since an ask and its grant crossed
                self._outbox.add(codec.encode(Accepted(request=request)))
            else:
                self._outbox.add(codec.encode(Declined(request=request)))
            return
        if entry.doubts_grant(self._thawed_at, now):
            # If it is good still, that is said again.
            self._outbox.add(codec.encode(entry.said_again(now)))
            return
        del self._open[request]
        self._leases.add(entry.ask, granted, entry.asker, now)
        self._unaccepted[request] = None
        if granted.epoch != self.epoch:
            self._take_epoch(granted.epoch)
        grant(entry.asker, granted)

    def _take_places(self, moved: listening.Moved) -> None:
        for request, place in moved.places:
            if (entry := self._heard(request)) is None:
                continue
            if place:
                entry.asker.on_place(place, was_ready=moved.was_ready)
            else:
                entry.asker.on_loading()

    def _take_refusal(self, message: listening.Refused | listening.CutOff) -> None:
        if isinstance(message, listening.CutOff):
            self._take_back_promise(message.request)
            if (user := self._leases.user_of(message.request)) is not None:
                user.on_cut(_refusal(message), had_lapsed=message.had_lapsed)
            self._leases.forget(message.request)
        elif (entry := self._open.pop(message.request, None)) is not None:
            count_at = CountAt(message.host, message.upstream) if message.host else None
            entry.asker.on_refused(_refusal(message), count_at)

    def _take_back_promise(self, lease: RequestId) -> None:
        """A request that would have gone by a lease that is void now has not begun: it is asked for."""
        ask = self._leases.ask_of(lease)
        if ask is not None and (asker := self._promises.drop(ask.request)) is not None:
            self._leases.leave(ask.request)
            self._leases.forget(lease)
            self.request(ask, asker, time.monotonic())

    def _take_epoch(self, epoch: Epoch) -> None:
        known, self.epoch = self.epoch, epoch
        self._complaint = ""
        if known is not None and known != epoch:
            # The greeting this answers may have been written before the old scheduler ended.
            _log.info("link.new_scheduler", epoch=epoch, waiting=self.waiting, held=self.held)
            self._greet()

    def _take_version(self, version: str, path: Path) -> None:
        if version != self._configured:
            self._configured = version
            self.on_configured(version, path)

    def _take_unwelcome(self, reason: str, *, greet: bool) -> None:
        if greet:
            self._greet()
        elif reason != self._complaint:
            self._complaint = reason
            _log.error("link.unwelcome", because=reason)

    def _heard(self, request: RequestId) -> Unanswered | None:
        entry = self._open.get(request)
        if entry is not None:
            entry.hear(time.monotonic())
        return entry

    def _absent(self) -> Refusal:
        because = self._complaint or "is `qmsup serve` running?"
        return Refusal(
            code=Code.SCHEDULER_UNAVAILABLE,
            message=f"the scheduler did not answer within {self.grace:g} s: {because}",
            retry_after=_RETRY_AFTER,
        )


def _ignore(_version: str, _path: Path) -> None:
    """Stands in until somebody listens."""


def _refusal(message: listening.Refused | listening.CutOff) -> Refusal:
    retry = message.retry_after_s if isinstance(message, listening.Refused) else None
    return Refusal(
        code=code_of(message.code),
        message=message.message,
        retry_after=None if retry is None else Seconds(retry),
    )
