"""Looks after jobs that run: asks for each again and again, renews its lease, and ends that when the job has ended.

A child that answers late, or wrongly, is no dead one: a job ends with what its server says, with the end of the child,
or when nothing sensible has come for so long that nobody can believe in it any more.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from qmsup.actors.job_book import KEPT_FOR, JobBook, JobRecord
from qmsup.actors.job_calls import Calls
from qmsup.actors.job_news import EndJob, JobWish, KeepJob
from qmsup.ids import LeaseId
from qmsup.job_ids import job_path
from qmsup.log import Log
from qmsup.units import Seconds
from qmsup.upstream import job_answers
from qmsup.upstream.call import Answered, Unanswered, Wanted
from qmsup.upstream.job_answers import Forgotten, Stands, Unclear

_FIRST_PAUSE = Seconds(0.05)
_LONGEST_PAUSE = Seconds(0.5)
"""A question costs its server a millisecond; a model that could be stopped waits for the answer."""
_ANSWERS_WITHIN = Seconds(30.0)
_RENEWED_EVERY = Seconds(30.0)
_GIVEN_UP_AFTER = Seconds(900.0)
_CATCH_UP_EVERY = Seconds(1.0)
"""What a full disk did not take is written when there is room."""

_log = Log("jobs")


@dataclass(slots=True)
class _Round:
    """One job that runs.

    Attributes:
        text: its last document, as clients read it.
        is_sure: its child is known to run; else another one may have its port.
    """

    record: JobRecord
    text: bytes
    is_sure: bool
    ask_at: float
    renew_at: float
    pause: float = _FIRST_PAUSE
    is_asking: bool = False
    unclear_since: float | None = None
    because: str = "its model's server has ended"


class Rounds:
    """For the watcher's thread alone."""

    def __init__(
        self,
        book: JobBook,
        calls: Calls,
        report: Callable[[JobWish], None],
        on_over: Callable[[JobRecord], None],
    ) -> None:
        """Nothing is looked after yet.

        Args:
            book: of all jobs.
            calls: carries the questions.
            report: takes what the scheduler is to do about leases.
            on_over: called when a job has ended.
        """
        self._book = book
        self._calls = calls
        self._report = report
        self._on_over = on_over
        self._running: dict[LeaseId, _Round] = {}
        self._ended: dict[str, JobRecord] = {}
        self._forget_at: dict[str, float] = {}
        """By the monotonic clock: the wall clock may be set meanwhile."""
        self._catch_up_at = 0.0

    def recall(self) -> list[JobRecord]:
        """Go on with what a former life looked after. Who still runs the scheduler is asked for first.

        Returns:
            The jobs that have not ended.
        """
        now = time.monotonic()
        for record in self._book.read_all():
            if record.ended is not None:
                self._note_end(record)
                continue
            text = self._book.document(record)
            if job_answers.is_over(text):  # its end came between two writes
                ended = self._book.keep(record, text)
                self._note_end(ended)
                self._report(EndJob(lease=ended.lease))
                continue
            self._running[record.lease] = _Round(
                record, text, is_sure=False, ask_at=now, renew_at=now
            )
        return [each.record for each in self._running.values()]

    def watch(self, record: JobRecord, text: bytes) -> None:
        """Look after a job that was just begun."""
        now = time.monotonic()
        record = self._book.keep(record, text)
        begun = _Round(record, text, is_sure=True, ask_at=now + _FIRST_PAUSE, renew_at=now)
        self._running[record.lease] = begun
        _log.info("job.begun", job=record.id, model=record.model, kind=record.kind)
        if record.ended is not None:
            self._end(begun, text)

    def find(self, job: str) -> JobRecord | None:
        """A job by its id; None = it is unknown, or was forgotten."""
        running = (each.record for each in self._running.values())
        return next((r for r in running if r.id == job), None) or self._ended.get(job)

    def begun_under(self, request: str) -> JobRecord | None:
        """The job that was begun under a request's grant, in this life or before: its worker may not have heard."""
        records = [*(each.record for each in self._running.values()), *self._ended.values()]
        return next((r for r in records if request and r.request == request), None)

    def document(self, record: JobRecord) -> bytes:
        """How a job stands, as its clients read it."""
        return self._book.document(record)

    @property
    def due(self) -> Seconds | None:
        """When `work` is wanted next; None = there are no jobs."""
        times = [each.renew_at for each in self._running.values()]
        times += [each.ask_at for each in self._running.values() if _may_ask(each)]
        times += self._forget_at.values()
        times += [self._catch_up_at] if self._book.is_behind else []
        return min(map(Seconds, times), default=None)

    def work(self, now: Seconds) -> None:
        """Do what is due."""
        for each in tuple(self._running.values()):
            if now >= each.renew_at:
                self._renew(each, now)
            if _may_ask(each) and now >= each.ask_at:
                self._ask(each)
        if self._book.is_behind and now >= self._catch_up_at:
            self._catch_up_at = now + _CATCH_UP_EVERY
            self._book.catch_up()
        for job in [job for job, at in self._forget_at.items() if now >= at]:
            del self._forget_at[job]
            self._book.forget(self._ended.pop(job))

    def lease_given(self, lease: LeaseId) -> bool:
        """The lease of a job is held, so its child runs; False = it is none of those."""
        each = self._running.get(lease)
        if each is not None:
            each.is_sure = True
        return each is not None

    def lease_ended(self, lease: LeaseId, because: str) -> None:
        """It may have ended with the child, or alone."""
        each = self._running.get(lease)
        if each is not None:
            each.is_sure = False
            each.because = because
            self._renew(each, time.monotonic())

    def child_gone(self, lease: LeaseId) -> None:
        """Nobody works on the job any more."""
        each = self._running.get(lease)
        if each is not None:
            self._fail(
                each, "model_stopped", f"the job has ended before it was done: {each.because}"
            )

    def told(self, lease: LeaseId, answer: Answered | Unanswered) -> None:
        """Take what a job's server said of it."""
        each = self._running.get(lease)
        if each is None:
            return
        match job_answers.stands(answer):
            case Stands(text=theirs, is_over=is_over):
                each.unclear_since = None
                text = job_answers.renamed(theirs, each.record.id)
                if is_over:
                    self._end(each, text)
                elif text != each.text:
                    each.text = text
                    self._book.keep(each.record, text)
            case Forgotten(because=because):
                self._fail(each, "job_lost", because)
            case Unclear(because=because):
                self._doubt(each, because)
            case unexpected:
                assert_never(unexpected)

    def _renew(self, each: _Round, now: float) -> None:
        each.renew_at = now + _RENEWED_EVERY
        record = each.record
        self._report(
            KeepJob(
                lease=record.lease,
                model=record.model,
                incarnation=record.incarnation,
                purpose=record.kind,
            )
        )

    def _ask(self, each: _Round) -> None:
        each.is_asking = True
        lease = each.record.lease
        wanted = Wanted(
            upstream=each.record.upstream, method="GET", target=job_path(each.record.theirs)
        )
        self._calls.start(wanted, _ANSWERS_WITHIN, lambda answer: self._answered(lease, answer))

    def _answered(self, lease: LeaseId, answer: Answered | Unanswered) -> None:
        each = self._running.get(lease)
        if each is None:
            return
        each.is_asking = False
        each.ask_at = time.monotonic() + each.pause
        each.pause = min(each.pause * 1.5, _LONGEST_PAUSE)
        self.told(lease, answer)

    def _doubt(self, each: _Round, because: str) -> None:
        now = time.monotonic()
        if each.unclear_since is None:
            each.unclear_since = now
            _log.warning("job.unclear", job=each.record.id, because=because)
        elif now - each.unclear_since > _GIVEN_UP_AFTER:
            self._fail(each, "job_lost", f"nothing was heard of it for too long: {because}")

    def _fail(self, each: _Round, code: str, because: str) -> None:
        self._end(each, job_answers.failed(each.text, code, because, time.time()))

    def _end(self, each: _Round, text: bytes) -> None:
        """The document is kept before the lease ends: the model may be stopped for others at once."""
        record = each.record if each.record.ended else self._book.keep(each.record, text)
        del self._running[record.lease]
        self._note_end(record)
        self._report(EndJob(lease=record.lease))
        _log.info("job.over", job=record.id, model=record.model, status=job_answers.status_in(text))
        self._on_over(record)

    def _note_end(self, record: JobRecord) -> None:
        assert record.ended is not None, "only what has ended is forgotten"
        self._ended[record.id] = record
        left = record.ended + KEPT_FOR - time.time()
        self._forget_at[record.id] = time.monotonic() + min(max(left, 0.0), KEPT_FOR)


def _may_ask(each: _Round) -> bool:
    return each.is_sure and not each.is_asking
