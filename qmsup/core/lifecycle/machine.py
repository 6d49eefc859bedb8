"""The life of one model's child, as a pure machine: what happened goes in with a time, what is to be done comes out.

    STOPPED ── Wanted ──▶ STARTING ── a probe says ready ──▶ READY ◀── Adopted (from STOPPED)
       ▲                     │ Unwanted, start_timeout          │ Unwanted
       └───── Gone ────── STOPPING ◀── Exited by itself ────────┘

A stop has three steps, each on a timer, because a child may be deaf to any of them: TERM (again after `term_again`
where a lost one is known), KILL after `stop_grace`, and after `KILL_PATIENCE` the child is given up: it hangs in the
kernel, and nobody may wait for it. How the child exits is never judged. Exited tells of the leader; Gone of everything
that came from it, and only Gone ends a life, because until then the memory is not back. What a leader leaves behind
that ended as it was asked to has the same grace; what one leaves that ended by itself is killed at once.

FAILED is no phase: a child that failed is STOPPED like any other, and the report said why. A start that lost its port
to somebody else is tried again on another port, within the same incarnation and the same `start_timeout`.

A ready child is asked now and then whether it lives; `liveness` says when it hangs, and `progress` when it does though
it answers. Then KILL comes at once, as TERM would not be heard.

Every Wanted ends in a report of its incarnation, and so does every Unwanted, also when there is no such child.
"""

from dataclasses import dataclass
from typing import assert_never

from qmsup.core.lifecycle.effects import (
    Effect,
    EndProbe,
    GiveUp,
    Kill,
    LookAtWork,
    ReportFailed,
    ReportReady,
    ReportStarting,
    ReportStopped,
    SeeRest,
    Spawn,
    StartProbe,
    Terminate,
)
from qmsup.core.lifecycle.events import (
    Adopted,
    Event,
    Exited,
    Gone,
    ProbeAnswered,
    Readiness,
    Spawned,
    SpawnFailed,
    TimePassed,
    Unwanted,
    Wanted,
    WorkSeen,
)
from qmsup.core.lifecycle.liveness import ANSWER_WITHIN, ASK_EVERY, Pulse
from qmsup.core.lifecycle.pace import pause, remembered
from qmsup.core.lifecycle.phase import Phase
from qmsup.core.lifecycle.timers import Limits, Timers, has_come
from qmsup.ids import Incarnation
from qmsup.units import Seconds

PROBE_TIMEOUT = Seconds(1.0)
"""A stopped (SIGSTOP) child accepts connections and never answers."""
KILL_PATIENCE = Seconds(30.0)
"""A process killed in the middle of a driver call can take long to die; a GPU reset takes about this."""
_LOOK_AGAIN = Seconds(0.02)
_SELDOM_LOOK = Seconds(0.2)
"""Grandchildren are not ours to wait for, so whether they are gone is looked at, not told; less often with time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    reason: str
    last_lines: str = ""


class Lifecycle:
    """One model's child. `handle` is the only door; call it with TimePassed no later than `wake_at`."""

    __slots__ = (
        "_failure",
        "_incarnation",
        "_look_pause",
        "_next",
        "_probe_words",
        "_pulse",
        "_spawned",
        "_spawned_at",
        "_started_at",
        "_timers",
        "_took",
        "_tries_left",
        "_will_retry",
        "limits",
        "phase",
    )

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        """In force for the next start and the next stop."""
        self.phase = Phase.STOPPED
        self._incarnation: Incarnation | None = None
        self._next: Incarnation | None = None
        self._failure: _Failure | None = None
        self._will_retry = False
        self._tries_left = 0
        self._started_at = Seconds(0.0)
        self._spawned_at = Seconds(0.0)
        self._probe_words = ""
        self._timers = Timers()
        self._spawned = Spawned()
        self._pulse = Pulse(self.limits.silent_looks)
        self._look_pause = _LOOK_AGAIN
        self._took: tuple[Seconds, ...] = ()

    @property
    def incarnation(self) -> Incarnation | None:
        """The one whose child there is; None while stopped."""
        return self._incarnation

    @property
    def wake_at(self) -> Seconds | None:
        """When time alone changes something next."""
        return self._timers.earliest()

    @property
    def wants_no_reason(self) -> bool:
        """The child ends as it was asked to: how it exits, and what it said last, is of no interest."""
        return self.phase is Phase.STOPPING and self._failure is None

    def handle(self, event: Event, now: Seconds) -> list[Effect]:
        """Take in one thing that happened at `now`; what it calls for, in order."""
        match event:
            case Wanted(incarnation=incarnation):
                effects = self._wanted(incarnation, now)
            case Unwanted(incarnation=incarnation):
                effects = self._unwanted(incarnation, now)
            case Spawned() | SpawnFailed() | Adopted():
                effects = self._begun(event, now)
            case ProbeAnswered():
                effects = self._probe_answered(event, now)
            case WorkSeen():
                effects = self._work_seen(event, now)
            case Exited():
                effects = self._exited(event, now)
            case Gone(last_lines=last_lines):
                self._add_lines(last_lines)
                effects = self._gone(now)
            case TimePassed():
                effects = self._time_passed(now)
            case _:
                assert_never(event)
        return effects

    def _wanted(self, incarnation: Incarnation, now: Seconds) -> list[Effect]:
        if self._incarnation is None:
            return self._start(incarnation, now)
        if self.phase is Phase.STOPPING:
            return self._wait_to_start(incarnation)
        if incarnation < self._incarnation:  # from before its own end was heard of
            return [ReportStopped(incarnation=incarnation)]
        if incarnation > self._incarnation:  # a child cannot change its number
            self._next = incarnation
            return self._stop(now)
        return [ReportReady(incarnation=incarnation)] if self.phase is Phase.READY else []

    def _wait_to_start(self, incarnation: Incarnation) -> list[Effect]:
        if self._will_retry and incarnation == self._incarnation:
            return []  # it is about to be tried again
        self._will_retry = False
        replaced, self._next = self._next, incarnation
        if replaced is None or replaced == incarnation:
            return []
        return [ReportStopped(incarnation=replaced)]

    def _unwanted(self, incarnation: Incarnation, now: Seconds) -> list[Effect]:
        if incarnation == self._next:
            self._next = None
            if incarnation != self._incarnation:
                return [ReportStopped(incarnation=incarnation)]
        if incarnation != self._incarnation:
            return [ReportStopped(incarnation=incarnation)]
        self._will_retry = False
        if self.phase is Phase.STOPPING:
            return []
        return self._stop(now)

    def _start(self, incarnation: Incarnation, now: Seconds) -> list[Effect]:
        self._incarnation = incarnation
        self._started_at = now
        self._tries_left = self.limits.port_tries
        return self._spawn(incarnation)

    def _spawn(self, incarnation: Incarnation) -> list[Effect]:
        self.phase = Phase.STARTING
        self._tries_left -= 1
        self._failure = None
        self._will_retry = False
        self._probe_words = "no answer yet"
        self._timers = Timers(start_by=Seconds(self._started_at + self.limits.start_timeout))
        return [Spawn(incarnation=incarnation)]

    def _begun(self, event: Spawned | SpawnFailed | Adopted, now: Seconds) -> list[Effect]:
        match event:
            case Spawned():
                return self._has_spawned(event, now)
            case Adopted():
                return self._adopted(event, now)
            case SpawnFailed(reason=reason):
                self._failure = _Failure(reason=reason)
                return self._gone(now)
            case _:
                assert_never(event)

    def _has_spawned(self, spawned: Spawned, now: Seconds) -> list[Effect]:
        assert self._incarnation is not None
        self._spawned = spawned
        self._spawned_at = now
        self._timers.probe_at = self._next_probe(now)
        return [ReportStarting(incarnation=self._incarnation)]

    def _adopted(self, adopted: Adopted, now: Seconds) -> list[Effect]:
        assert self._incarnation is None, "an owner without a child adopts one"
        self._incarnation = adopted.incarnation
        self._spawned = adopted.spawned
        self._started_at = self._spawned_at = now
        self._is_ready(now)
        return []

    def _is_ready(self, now: Seconds) -> None:
        self.phase = Phase.READY
        self._pulse = Pulse(self.limits.silent_looks)
        self._watch(now)

    def _probe_answered(self, answer: ProbeAnswered, now: Seconds) -> list[Effect]:
        if self.phase is Phase.READY:
            return self._asked(now, is_answer=answer.is_answer)
        if self.phase is not Phase.STARTING:
            return []
        assert self._incarnation is not None
        match answer.readiness:
            case Readiness.READY:
                self._is_ready(now)
                self._took = remembered(self._took, Seconds(now - self._spawned_at))
                return [EndProbe(), ReportReady(incarnation=self._incarnation)]
            case Readiness.NOT_YET:
                self._probe_words = answer.words or self._probe_words
                self._timers.probe_until = None
                self._timers.probe_at = self._next_probe(now)
                return [EndProbe()]
            case Readiness.FOREIGN:
                return self._fail(answer.words, now, will_retry=self._tries_left > 0)
            case _:
                assert_never(answer.readiness)

    def _watch(self, now: Seconds) -> None:
        pause = ASK_EVERY if self._pulse.is_calm else ANSWER_WITHIN
        can = self._spawned.can_be_watched
        self._timers = Timers(probe_at=Seconds(now + pause) if can else None)

    def _asked(self, now: Seconds, *, is_answer: bool) -> list[Effect]:
        self._timers = Timers()
        if not is_answer:
            return [EndProbe(), LookAtWork()]
        self._pulse.beats()
        self._watch(now)
        return [EndProbe()]

    def _work_seen(self, seen: WorkSeen, now: Seconds) -> list[Effect]:
        if self.phase is not Phase.READY:
            return []
        judge = self._pulse.is_silent if self._spawned.can_be_asked else self._pulse.is_only_watched
        why = seen.stalls or judge(seen.work, now)
        if not why:
            self._watch(now)
            return []
        self._failure = _Failure(reason=why)
        self.phase = Phase.STOPPING
        return self._kill(now, looks_again=False)

    def _next_probe(self, now: Seconds) -> Seconds:
        return Seconds(now + pause(Seconds(now - self._spawned_at), self._took))

    def _exited(self, exited: Exited, now: Seconds) -> list[Effect]:
        if self.phase is not Phase.STOPPING:
            is_loading = self.phase is Phase.STARTING
            self._will_retry = is_loading and exited.port_taken and self._tries_left > 0
            reason = f"the child {exited.how} while {'loading' if is_loading else 'ready'}"
            self._failure = _Failure(
                reason=f"{reason}: {exited.hint}" if exited.hint else reason,
                last_lines=exited.last_lines,
            )
        else:
            self._add_lines(exited.last_lines)
            if (kill_at := self._timers.kill_at) is not None:  # what it started has its grace, too
                self._look_pause = _LOOK_AGAIN
                self._timers = Timers(look_at=Seconds(now + _LOOK_AGAIN), kill_at=kill_at)
                return [EndProbe(), SeeRest()]
        self.phase = Phase.STOPPING
        return self._kill(now, looks_again=True)

    def _kill(self, now: Seconds, *, looks_again: bool) -> list[Effect]:
        """KILL. Without its leader somebody must look whether the rest is gone; the leader's end is told."""
        self._look_pause = _LOOK_AGAIN
        self._timers = Timers(
            look_at=Seconds(now + _LOOK_AGAIN) if looks_again else None,
            give_up_at=Seconds(now + KILL_PATIENCE),
        )
        return [EndProbe(), Kill()]

    def _add_lines(self, last_lines: str) -> None:
        if self._failure is not None and not self._failure.last_lines:
            self._failure = _Failure(reason=self._failure.reason, last_lines=last_lines)

    def _fail(self, reason: str, now: Seconds, *, will_retry: bool = False) -> list[Effect]:
        self._failure = _Failure(reason=reason)
        self._will_retry = will_retry
        return self._stop(now)

    def _stop(self, now: Seconds) -> list[Effect]:
        self.phase = Phase.STOPPING
        grace, again = self.limits.stop_grace, self.limits.term_again
        self._timers = Timers(kill_at=Seconds(now + grace))
        if again is not None and again < grace:
            self._timers.term_at = Seconds(now + again)
        return [EndProbe(), Terminate()]

    def _gone(self, now: Seconds) -> list[Effect]:
        assert self._incarnation is not None
        if self._will_retry and now < self._started_at + self.limits.start_timeout:
            return self._spawn(self._incarnation)
        report = self._last_report(self._incarnation)
        wanted = self._next
        self.phase = Phase.STOPPED
        self._incarnation = self._next = self._failure = None
        self._will_retry = False
        self._timers = Timers()
        return [report] if wanted is None else [report, *self._start(wanted, now)]

    def _last_report(self, incarnation: Incarnation) -> ReportStopped | ReportFailed:
        if self._failure is None:
            return ReportStopped(incarnation=incarnation)
        return ReportFailed(
            incarnation=incarnation,
            reason=self._failure.reason,
            last_lines=self._failure.last_lines,
        )

    def _time_passed(self, now: Seconds) -> list[Effect]:
        due = self._timers
        if has_come(due.start_by, now):
            return self._fail(
                f"the child was not ready within {self.limits.start_timeout:g} s"
                f" (last seen: {self._probe_words}): raise healthCheckTimeout if it only needs longer",
                now,
            )
        if has_come(due.probe_until, now):
            words = f"a probe got no answer for {PROBE_TIMEOUT:g} s"
            return self._probe_answered(
                ProbeAnswered(readiness=Readiness.NOT_YET, words=words), now
            )
        if has_come(due.probe_at, now):
            return self._look(now)
        if has_come(due.give_up_at, now):
            return self._give_up(now)
        return self._press_on(now)

    def _look(self, now: Seconds) -> list[Effect]:
        self._timers.probe_at = None
        if self.phase is Phase.READY and not self._spawned.can_be_asked:
            return [LookAtWork()]
        patience = ANSWER_WITHIN if self.phase is Phase.READY else PROBE_TIMEOUT
        self._timers.probe_until = Seconds(now + patience)
        return [StartProbe()]

    def _press_on(self, now: Seconds) -> list[Effect]:
        due = self._timers
        if has_come(due.kill_at, now):
            return self._kill(now, looks_again=due.look_at is not None)
        if has_come(due.term_at, now):
            due.term_at = None
            return [Terminate()]
        if has_come(due.look_at, now):
            self._look_pause = min(Seconds(self._look_pause * 1.5), _SELDOM_LOOK)
            due.look_at = Seconds(now + self._look_pause)
            return [Kill()] if due.kill_at is None else [SeeRest()]
        return []

    def _give_up(self, now: Seconds) -> list[Effect]:
        self._will_retry = False
        self._failure = _Failure(
            reason=f"the child did not end within {KILL_PATIENCE:g} s of KILL: it hangs in the kernel"
            " (look for state D in ps, and at the GPU driver's log); its memory may still be taken"
        )
        return [GiveUp(), *self._gone(now)]
