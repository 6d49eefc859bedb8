"""The job watcher: gives jobs to the models' servers, one grant each, and looks after them to their end.

A job's request comes in from a listener's worker, under that request's grant. Its own lease is taken before anything
is sent on, and it belongs to nobody but this watcher: whichever worker ends, and whenever, no job is lost with it.
"""

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import assert_never
from urllib.parse import urlsplit

import pykka
from typing_extensions import override

from qmsup import places
from qmsup.actors import mishaps
from qmsup.actors.inbox import PollingInbox, TimeIsUp
from qmsup.actors.job_book import JobBook, JobRecord
from qmsup.actors.job_calls import Calls, Ended, Turn
from qmsup.actors.job_door import Visit, Visitor, open_door
from qmsup.actors.job_losses import Losses
from qmsup.actors.job_news import (
    BeginJob,
    ChildGone,
    EndJob,
    JobNews,
    JobWish,
    KnownJobs,
    LeaseEnded,
    LeaseGiven,
    LeaseRefused,
)
from qmsup.actors.job_rounds import Rounds
from qmsup.actors.job_turns import Turns
from qmsup.actors.job_visitors import Visitors
from qmsup.actors.names import NameAgain, name_again
from qmsup.errors import Code, Refusal
from qmsup.ids import LeaseId, RequestId
from qmsup.job_ids import job_id, job_path, new_lease_id
from qmsup.log import Log
from qmsup.units import Seconds
from qmsup.upstream import job_answers
from qmsup.upstream.call import Answered, Unanswered, Wanted

_KINDS = {"/sdcpp/v1/img_gen": "img_gen", "/sdcpp/v1/vid_gen": "vid_gen"}
_JOBS, _CANCEL = job_path(""), "/cancel"
_BEGUN_WITHIN = Seconds(100.0)
"""Less than the lease lives unrenewed. Its server answers at once, unless requests of others block it."""
_CANCELLED_WITHIN = Seconds(20.0)
_RETRY = Seconds(1.0)
_JSON = "application/json"
_SUCCESS = range(200, 300)

_log = Log("jobs")


@dataclass(frozen=True, slots=True)
class _Errand:
    """A job that waits for its lease, or for its server's word."""

    visitor: Visitor
    visit: Visit
    kind: str


class JobWatcher(pykka.ThreadingActor):
    """Tell it LeaseGiven, LeaseRefused, LeaseEnded and ChildGone; the rest comes through the door."""

    def __init__(
        self,
        *,
        door: socket.socket,
        report: Callable[[JobWish], None],
        on_break: Callable[[], None],
    ) -> None:
        """Made by the scheduler actor.

        Args:
            door: listens for workers, and does not block; closed with this.
            report: takes what the scheduler is to do about leases; must not wait.
            on_break: called when this actor cannot go on.
        """
        super().__init__()
        assert isinstance(self.actor_inbox, PollingInbox), "made below"
        self._inbox = self.actor_inbox
        self._door = door
        self._report = report
        self._on_break = on_break
        self._book = JobBook()
        self._calls = Calls(self._inbox)
        self._losses = Losses()
        self._rounds = Rounds(self._book, self._calls, report, self._over)
        self._visitors = Visitors(
            door, self._inbox, serve=self._serve, make_room=self._drop_who_is_gone
        )
        self._turns = Turns[_Errand]()
        self._errands: dict[LeaseId, _Errand] = {}
        self._servers: dict[LeaseId, str] = {}
        """Whose turn each job has that was begun in this life."""

    @staticmethod
    @override
    def _create_actor_inbox() -> PollingInbox:
        return PollingInbox()

    @override
    def on_start(self) -> None:
        self._visitors.open()
        records = self._rounds.recall()
        for record in records:
            self._turns.hold(record.upstream)
        self._report(KnownJobs(leases=frozenset(record.lease for record in records)))
        self._plan()

    @override
    def on_stop(self) -> None:
        self._close()

    @override
    def on_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # A fresh process goes on with every job: their records are on disk, their leases in `state.db`.
        _log.exception("jobs.broke")
        self._close()
        self._on_break()

    @override
    def on_receive(self, message: JobNews | TimeIsUp | Turn | NameAgain) -> None:
        match message:
            case Turn():
                self._do(message)
            case NameAgain():
                name_again(places.jobs_socket(), self._name_again)
            case LeaseGiven():
                if not self._rounds.lease_given(message.lease):
                    self._send(message)
            case LeaseRefused(lease=lease, refusal=refusal):
                if (errand := self._errands.pop(lease, None)) is not None:
                    errand.visit.body.close()
                    self._visitors.refuse(errand.visitor, refusal)
                    self._end_turn(errand.visit.server)
            case LeaseEnded(lease=lease, because=because):
                self._rounds.lease_ended(lease, because)
            case ChildGone(lease=lease):
                self._rounds.child_gone(lease)
            case TimeIsUp():
                now = Seconds(time.monotonic())
                self._calls.work(now)
                self._losses.work(now)
                self._rounds.work(now)
                self._visitors.work(now)
            case unexpected:
                assert_never(unexpected)
        self._plan()

    def _do(self, turn: Turn) -> None:
        try:
            turn.do()
        except Exception as error:  # noqa: BLE001 - one job's misfortune must not end all the others
            mishaps.note("jobs", "one of them", error)
            _log.exception_again("job.broken")

    def _name_again(self) -> bool:
        path = places.jobs_socket()
        if path.exists():
            return False
        former, self._door = self._door, open_door(path)
        self._visitors.move(self._door)
        former.close()  # who stood before it comes again, by the other one
        return True

    def _plan(self) -> None:
        times = (self._calls.due, self._losses.due, self._rounds.due, self._visitors.due)
        self._inbox.wake_at(min((t for t in times if t is not None), default=None))

    def _close(self) -> None:
        self._calls.close()
        for errand in (*self._errands.values(), *self._turns.leave()):
            errand.visit.body.close()
        self._visitors.close()
        Path(self._door.getsockname()).unlink(missing_ok=True)
        self._door.close()
        self._inbox.close()

    # ---- who comes in

    def _serve(self, visitor: Visitor, visit: Visit) -> None:
        path = urlsplit(visit.target).path.removesuffix("/")
        if visit.method == "POST" and (kind := _KINDS.get(path)) is not None:
            if (known := self._rounds.begun_under(visit.request)) is not None:
                visit.body.close()
                self._visitors.answer(
                    visitor, HTTPStatus.ACCEPTED, _JSON, self._rounds.document(known)
                )
                return
            errand = _Errand(visitor, visit, kind)
            if self._turns.take(visit.server, errand):
                self._begin(errand)
            return
        visit.body.close()
        is_read = visit.method == "GET" and not path.endswith(_CANCEL)
        is_cancel = visit.method == "POST" and path.endswith(_CANCEL)
        name = path.removeprefix(_JOBS).removesuffix(_CANCEL)
        is_job = path.startswith(_JOBS) and (is_read or is_cancel)
        record = self._rounds.find(name) if is_job else None
        if record is None:
            refusal = Refusal(code=Code.JOB_NOT_FOUND, message=f"there is no job {name[:200]!r}")
            self._visitors.refuse(visitor, refusal)
        elif is_read or record.ended is not None:
            self._visitors.answer(visitor, 200, _JSON, self._rounds.document(record))
        else:
            self._cancel(visitor, record)

    # ---- jobs

    def _begin(self, errand: _Errand) -> None:
        """It is this job's turn: have a lease taken for it."""
        lease = new_lease_id()
        self._errands[lease] = errand
        request = RequestId(errand.visit.request)
        self._report(BeginJob(lease=lease, request=request, purpose=errand.kind))

    def _drop(self, errand: _Errand) -> None:
        errand.visit.body.close()
        self._visitors.part(errand.visitor)

    def _drop_who_is_gone(self) -> None:
        """Of those who wait for their turn, which may be hours."""
        for errand in self._turns.withdraw(lambda errand: errand.visitor.is_gone()):
            self._drop(errand)

    def _over(self, record: JobRecord) -> None:
        self._end_turn(self._servers.pop(record.lease, record.upstream))

    def _end_turn(self, server: str) -> None:
        """The next job may be begun, if somebody still wants it."""
        while (errand := self._turns.end(server)) is not None:
            if not errand.visitor.is_gone():
                self._begin(errand)
                return
            self._drop(errand)

    def _send(self, given: LeaseGiven) -> None:
        """The lease is held: give the job to its server, if somebody still wants it."""
        errand = self._errands.pop(given.lease, None)
        if errand is None or errand.visitor.is_gone():
            self._report(EndJob(lease=given.lease))
            if errand is not None:
                self._drop(errand)
                self._end_turn(errand.visit.server)
            return
        visit = errand.visit
        wanted = Wanted(
            upstream=given.upstream,
            method="POST",
            target=visit.target,
            body=visit.body,
            length=visit.length,
            content_type=visit.content_type,
        )
        self._ask(errand.visitor, wanted, _BEGUN_WITHIN, partial(self._begun, errand, given))

    def _begun(self, errand: _Errand, given: LeaseGiven, answer: Answered | Unanswered) -> None:
        visitor = errand.visitor
        try:
            begun = job_answers.begun(answer) if isinstance(answer, Answered) else None
            if begun is not None and isinstance(answer, Answered):
                text = self._watch(errand, given, begun)
                self._visitors.answer(visitor, answer.status, _JSON, text)
                return
        except Exception:
            self._servers.pop(given.lease, None)
            self._report(EndJob(lease=given.lease))
            self._end_turn(errand.visit.server)
            raise
        self._report(EndJob(lease=given.lease))
        self._end_turn(errand.visit.server)
        if isinstance(answer, Answered) and answer.status not in _SUCCESS:
            self._visitors.answer(visitor, answer.status, answer.content_type, answer.body)
            return
        if isinstance(answer, Answered):
            self._refuse(visitor, given, "its answer names no job", "")
            return
        tell = partial(self._refuse, visitor, given, answer.because)
        log, now = places.log_file(given.model), Seconds(time.monotonic())
        self._losses.add(log, given.incarnation, now, tell)

    def _refuse(self, visitor: Visitor, given: LeaseGiven, because: str, last_words: str) -> None:
        """There will be no job; `last_words` say what its server ended of, if it has and that is known."""
        because = last_words or because
        _log.warning("job.not_begun", model=given.model, because=because)
        # Never by hanging up: that is how a worker knows that this process has ended.
        message = f"the server of model {given.model}: {because}"
        refusal = Refusal(code=Code.UPSTREAM_FAILED, message=message, retry_after=_RETRY)
        self._visitors.refuse(visitor, refusal)

    def _watch(self, errand: _Errand, given: LeaseGiven, begun: job_answers.Begun) -> bytes:
        """It is a job now; its first document."""
        record = JobRecord(
            id=job_id(given.lease, begun.theirs),
            theirs=begun.theirs,
            lease=given.lease,
            model=given.model,
            incarnation=given.incarnation,
            upstream=given.upstream,
            kind=errand.kind,
            request=errand.visit.request,
        )
        text = job_answers.named(begun.document, record.id, job_path(record.id))
        self._servers[record.lease] = errand.visit.server
        self._rounds.watch(record, text)  # first: who reads the id may ask for it at once
        return text

    def _cancel(self, visitor: Visitor, record: JobRecord) -> None:
        wanted = Wanted(
            upstream=record.upstream, method="POST", target=job_path(record.theirs) + _CANCEL
        )
        self._ask(visitor, wanted, _CANCELLED_WITHIN, partial(self._cancelled, visitor, record))

    def _ask(self, visitor: Visitor, wanted: Wanted, within: Seconds, on_end: Ended) -> None:
        """Ask a server on behalf of a visitor."""

        def end(answer: Answered | Unanswered) -> None:
            with self._visitors.remembering(visitor):
                on_end(answer)

        self._calls.start(wanted, within, end)

    def _cancelled(
        self, visitor: Visitor, record: JobRecord, answer: Answered | Unanswered
    ) -> None:
        if isinstance(answer, Unanswered):
            message = f"the server of job {record.id} did not answer: {answer.because}"
            refusal = Refusal(code=Code.UPSTREAM_FAILED, message=message, retry_after=_RETRY)
            self._visitors.refuse(visitor, refusal)
        elif answer.status in _SUCCESS:
            self._rounds.told(record.lease, answer)
            self._visitors.answer(visitor, answer.status, _JSON, self._rounds.document(record))
        else:
            self._visitors.answer(visitor, answer.status, answer.content_type, answer.body)
