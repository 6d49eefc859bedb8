"""The owner of one model's child. The lifecycle machine says what to do and when; here it is done, without waiting.

Three things are waited for at once: a message, the child (its end, or a probe's answer), and the machine's next
deadline. What becomes of the child is told through `report`, in this actor's thread.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import assert_never

import pykka
from typing_extensions import override

from qmsup import child_ends
from qmsup.actors import mishaps
from qmsup.actors.child_hands import ChildEnded, ChildHands, StopCommandEnded
from qmsup.actors.inbox import PollingInbox, TimeIsUp
from qmsup.actors.progress_watch import ProgressSaw, ProgressWatch
from qmsup.actors.questions import ProbeSaw
from qmsup.actors.running import Running
from qmsup.core.lifecycle import effects as do
from qmsup.core.lifecycle import events as happened
from qmsup.core.lifecycle.machine import Lifecycle
from qmsup.core.lifecycle.phase import Phase
from qmsup.core.lifecycle.timers import Limits
from qmsup.core.scheduling.effects import AbortStart, EnsureReady, Stop
from qmsup.core.scheduling.events import (
    Event,
    ProcessFailed,
    ProcessReady,
    ProcessStarting,
    ProcessStopped,
)
from qmsup.core.scheduling.memory_events import FootprintMeasured, SeenBy
from qmsup.ids import Incarnation
from qmsup.log import Log
from qmsup.places import log_file
from qmsup.processes.backends.choice import backend_of
from qmsup.processes.child import Child
from qmsup.processes.command import has_fixed_port
from qmsup.processes.load_log import figures_of
from qmsup.processes.ports import PortPool
from qmsup.spec import ModelSpec
from qmsup.units import Seconds

_log = Log("child")
_TERM_AGAIN = Seconds(2.0)
"""A TERM in the moment of getting ready is lost in one of some 100 starts of a llama-server."""
_LAST_GRACE = Seconds(2.0)
"""When the actor itself ends, others wait for it."""
_PORT_TRIES = 3
_UNTIL_SPAWNED = 0.002
"""Seconds: who waited for the end of this child has started another by then."""
_UNTIL_GRANTED = 0.001
"""Seconds: who waited for this child has it by then."""
_MEASURED_AFTER = Seconds(0.02)
"""From ready on: first the requests that wait for it are to have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecChanged:
    """The model is configured otherwise: its times count from now, its command from the next start."""

    spec: ModelSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepChild:
    """Whether a ready child outlives this actor. It does not unless told."""

    keep: bool = True


@dataclass(frozen=True, slots=True)
class AdoptChild:
    """Go on with a child that a former scheduler started. For an owner that has none."""

    child: Child


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unmeasured:
    """A ready child whose log was not yet read for what it takes."""

    incarnation: Incarnation
    running: Running
    due: Seconds


class ProcessManager(pykka.ThreadingActor):
    """Obeys EnsureReady, Stop and AbortStart for one model; takes SpecChanged, KeepChild and AdoptChild beside.

    A failure of ours ends the child too and is reported as its failure; the actor is then dead for good.
    """

    def __init__(
        self, *, spec: ModelSpec, report: Callable[[Event], None], ports: PortPool
    ) -> None:
        """Own a model that has no child yet.

        Args:
            spec: the model.
            report: takes ProcessStarting, ProcessReady, ProcessStopped, ProcessFailed and what the load log said
                (FootprintMeasured); must not wait.
            ports: shared with every other owner.
        """
        super().__init__()
        assert isinstance(self.actor_inbox, PollingInbox)
        self._inbox = self.actor_inbox
        self._spec = spec
        self._report = report
        self._life = Lifecycle(_limits_of(spec))
        self._hands = ChildHands(self._inbox, ports)
        self._progress = ProgressWatch(self._inbox)
        self._unmeasured: _Unmeasured | None = None
        self._lines: list[Callable[[], None]] = []
        """Of the log, to be written."""
        self._head_start = 0.0
        """For those who were told of something, in seconds."""
        self._keeps_child = False
        self._started_at = _now()

    @staticmethod
    @override
    def _create_actor_inbox() -> PollingInbox:
        return PollingInbox()

    @override
    def on_receive(self, message: object) -> None:
        match message:
            case EnsureReady(incarnation=incarnation):
                self._take(happened.Wanted(incarnation=incarnation))
            case Stop(incarnation=incarnation) | AbortStart(incarnation=incarnation):
                self._take(happened.Unwanted(incarnation=incarnation))
                self._measure()  # while it ends
            case TimeIsUp():
                now = _now()
                self._measure(now)
                self._hands.tend_log(now)
                self._take(self._progress.tend(now), happened.TimePassed())
            case ProbeSaw() | ProgressSaw() | StopCommandEnded() | ChildEnded():
                self._hear(message)
            case SpecChanged(spec=spec):
                self._spec = spec
                self._life.limits = _limits_of(spec)
            case KeepChild(keep=keep):
                self._keeps_child = keep
            case AdoptChild(child=child):
                self._take(self._hands.adopt(child, self._spec))
            case _:
                super().on_receive(message)

    def _hear(self, message: ProbeSaw | ProgressSaw | StopCommandEnded | ChildEnded) -> None:
        """What is heard of the child."""
        match message:
            case ProbeSaw(answer=answer):
                self._take(self._hands.judge(answer))
            case ProgressSaw():
                self._progress.saw(message, _now())
                self._take(None)  # when it is asked again
            case StopCommandEnded():
                self._hands.stop_command_ended()
            case ChildEnded(child=child):
                self._measure()  # first: it is about a child that there is
                wants_reason = not self._life.wants_no_reason
                self._take(self._hands.ended(child, wants_reason=wants_reason))
            case _:
                assert_never(message)

    @override
    def on_stop(self) -> None:
        keep = self._keeps_child and self._life.phase is Phase.READY
        self._progress.close()
        self._hands.close(keep=keep, grace=min(self._life.limits.stop_grace, _LAST_GRACE))
        self._inbox.close()

    @override
    def on_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        mishaps.note(f"the manager of {self._spec.id}", "its child", exception_value)
        incarnation = self._life.incarnation
        try:
            self._progress.close()
            self._hands.close(keep=False, grace=_LAST_GRACE)
            self._inbox.close()
        finally:  # whatever else fails: somebody waits for it
            if incarnation is not None:
                why = f"qmsup failed to look after the child ({exception_value!r}): see its own log"
                self._report(
                    ProcessFailed(model=self._spec.id, incarnation=incarnation, reason=why)
                )

    def _take(self, *happening: happened.Event | None) -> None:
        """Take in what happened, one after the other, and of each all that comes of it before the next."""
        for first in happening:
            events = deque([first])
            while events:
                event = events.popleft()
                if event is not None:
                    for effect in self._life.handle(event, _now()):
                        events.append(self._carry_out(effect))
        self._write_it_down()
        now = _now()
        is_ready = self._life.phase is Phase.READY
        self._progress.follow(self._hands.running if is_ready else None, now)
        hands = self._hands
        wishes = (self._life.wake_at, hands.log_due, hands.paperwork_due, self._progress.due)
        unmeasured = () if self._unmeasured is None else (self._unmeasured.due,)
        self._inbox.wake_at(
            min((at for at in (*wishes, *unmeasured) if at is not None), default=None)
        )

    def _write_it_down(self) -> None:
        """Log what was told, and keep records: after others have gone on with it, as only one thread runs at a time."""
        if self._head_start:
            time.sleep(self._head_start)
            self._head_start = 0.0
        for line in self._lines:
            line()
        self._lines.clear()
        self._hands.do_paperwork(_now())

    def _carry_out(self, effect: do.Effect) -> happened.Event | None:
        match effect:
            case do.Spawn(incarnation=incarnation):
                self._started_at = _now()
                return self._hands.spawn(self._spec, incarnation)
            case do.StartProbe() | do.LookAtWork() | do.SeeRest():
                return self._look(effect)
            case do.Kill():
                return self._hands.kill()
            case do.EndProbe():
                self._hands.end_probe()
            case do.Terminate():
                self._hands.terminate()
            case do.GiveUp():
                self._hands.give_up()
            case do.ReportStarting() | do.ReportReady() | do.ReportStopped() | do.ReportFailed():
                self._tell(effect)
            case _:
                assert_never(effect)
        return None

    def _look(self, effect: do.StartProbe | do.LookAtWork | do.SeeRest) -> happened.Event | None:
        match effect:
            case do.StartProbe():
                return self._hands.start_probe()
            case do.LookAtWork():
                return self._hands.look_at_work()
            case do.SeeRest():
                return self._hands.see_rest()
            case _:
                assert_never(effect)

    def _tell(
        self, effect: do.ReportStarting | do.ReportReady | do.ReportStopped | do.ReportFailed
    ) -> None:
        model, incarnation = self._spec.id, effect.incarnation
        match effect:
            case do.ReportStarting():
                self._tell_starting(incarnation)
            case do.ReportReady():
                self._tell_ready(incarnation)
            case do.ReportStopped():
                self._report(ProcessStopped(model=model, incarnation=incarnation))
                self._head_start = _UNTIL_SPAWNED
                self._lines.append(
                    partial(_log.info, "child.stopped", model=model, incarnation=incarnation)
                )
            case do.ReportFailed(reason=reason, last_lines=last_lines):
                _log.warning("child.failed", model=model, incarnation=incarnation, reason=reason)
                words = f"{reason}\n{last_lines}" if last_lines else reason
                child_ends.leave(log_file(model), incarnation, words)
                self._report(
                    ProcessFailed(
                        model=model,
                        incarnation=incarnation,
                        reason=reason,
                        last_lines=last_lines,
                    )
                )
            case _:
                assert_never(effect)

    def _tell_starting(self, incarnation: Incarnation) -> None:
        running = self._hands.running
        assert running is not None
        model, pid, port = self._spec.id, running.child.pid, running.launch.port
        self._report(ProcessStarting(model=model, incarnation=incarnation, pid=pid, port=port))
        starting = partial(_log.info, "child.starting", model=model, incarnation=incarnation)
        self._lines.append(partial(starting, pid=pid, port=port))

    def _tell_ready(self, incarnation: Incarnation) -> None:
        running = self._hands.running
        assert running is not None
        model, pid, upstream = self._spec.id, running.child.pid, running.launch.upstream
        took_ms = round((_now() - self._started_at) * 1000)
        self._report(
            ProcessReady(
                model=model,
                incarnation=incarnation,
                upstream=upstream,
                pid=pid,
                total_slots=running.check.total_slots,
                context=running.check.context,
            )
        )
        self._head_start = _UNTIL_GRANTED
        ready = partial(_log.info, "child.ready", model=model, incarnation=incarnation)
        self._lines.append(partial(ready, pid=pid, took_ms=took_ms))
        self._hands.note_ready()
        self._unmeasured = _Unmeasured(
            incarnation=incarnation, running=running, due=Seconds(_now() + _MEASURED_AFTER)
        )

    def _measure(self, now: Seconds | None = None) -> None:
        """Tell what the child said of its memory, if that is due; without a time at once."""
        unmeasured = self._unmeasured
        if unmeasured is None or (now is not None and now < unmeasured.due):
            return
        self._unmeasured = None
        incarnation, running = unmeasured.incarnation, unmeasured.running
        figures = figures_of(running.child.log, running.child.log_start)
        if figures is None:
            return
        model = self._spec.id
        _log.info(
            "child.measured",
            model=model,
            incarnation=incarnation,
            gpu_mib=figures.gpu,
            ram_mib=figures.ram,
            cards=",".join(f"{card}={size}" for card, size in figures.cards.items()) or None,
            by=figures.source,
        )
        self._report(
            FootprintMeasured(
                model=model,
                argv=running.spec.argv,
                peak=figures.gpu,
                incarnation=incarnation,
                ram=figures.ram,
                seen_by=SeenBy.LOAD_LOG,
            )
        )


def _limits_of(spec: ModelSpec) -> Limits:
    backend = backend_of(spec.kind)
    return Limits(
        start_timeout=spec.start_timeout,
        stop_grace=spec.stop_grace,
        term_again=_TERM_AGAIN if backend.repeats_term else None,
        port_tries=1 if has_fixed_port(spec) else _PORT_TRIES,
        silent_looks=backend.silent_looks,
    )


def _now() -> Seconds:
    return Seconds(time.monotonic())
