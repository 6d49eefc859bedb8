"""The world around a scheduler, as its effects see it: what runs, who holds what, what was answered.

It keeps its own books, from effects and events alone, and complains when the scheduler breaks its word.
"""

from dataclasses import dataclass, field

from qmsup.core.scheduling.effects import (
    AbortStart,
    Answer,
    Cut,
    Effect,
    EndProcess,
    EnsureReady,
    Grant,
    Record,
    Refuse,
    Stop,
)
from qmsup.ids import AskId, Incarnation, LeaseId, ModelId, RequestId, WorkerId


@dataclass(slots=True)
class Process:
    """One incarnation, as its owner knows it."""

    model: ModelId
    incarnation: Incarnation
    is_told_to_stop: bool = False
    is_ready: bool = False


@dataclass(slots=True)
class Asked:
    """A request, as its worker knows it."""

    request: RequestId
    listener: WorkerId
    model: ModelId
    is_over: bool = False
    grant: Grant | None = None
    is_accepted: bool = False
    is_counted: bool = False
    """The scheduler counts it in flight: it said so, and has not said otherwise since."""
    earlier: Grant | None = None
    """An offer that lapsed before the worker asked again; it may still come through."""
    answers: int = 0


@dataclass(slots=True)
class World:
    """Books over processes, requests and questions."""

    processes: dict[Incarnation, Process] = field(default_factory=dict)
    ended: list[Process] = field(default_factory=list)
    requests: dict[RequestId, Asked] = field(default_factory=dict)
    asks: dict[AskId, int] = field(default_factory=dict)
    jobs: dict[LeaseId, Incarnation | None] = field(default_factory=dict)
    """Every lease of a job that was asked for, and the child it is held on."""
    pinned: set[ModelId] = field(default_factory=set)
    """What was pinned at any time."""
    newest: int = 0
    has_ended: bool = False

    def take(self, effects: list[Effect], *, repeated: RequestId | None = None) -> None:
        """Believe what the scheduler ordered, if it may order it."""
        cut = {effect.request for effect in effects if isinstance(effect, Cut)}
        for effect in effects:
            match effect:
                case EnsureReady():
                    self._start(effect)
                case Stop() | AbortStart():
                    self._stop(effect, cut)
                case Grant():
                    self._grant(effect, is_repeated=effect.request == repeated)
                case Refuse():
                    self._refuse(effect, is_repeated=effect.request == repeated)
                case Cut():
                    self._cut(effect)
                case Record():
                    self._record(effect)
                case Answer():
                    self.asks[effect.ask] = self.asks.get(effect.ask, 0) + 1
                case EndProcess():
                    assert not self.has_ended, "the process ends once"
                    self.has_ended = True
                case _:
                    pass

    def running(self) -> set[ModelId]:
        """Models with a process that has not ended, told to stop or not."""
        return {process.model for process in self.processes.values()}

    def end(self, process: Process) -> None:
        """The owner reports the end."""
        del self.processes[process.incarnation]
        self.ended.append(process)

    def _start(self, effect: EnsureReady) -> None:
        assert effect.incarnation > self.newest, "incarnations grow"
        self.newest = effect.incarnation
        others = [p for p in self.processes.values() if p.model == effect.model]
        assert all(p.is_told_to_stop for p in others), "one live start for a model"
        self.processes[effect.incarnation] = Process(effect.model, effect.incarnation)

    def _stop(self, effect: Stop | AbortStart, cut: set[RequestId]) -> None:
        process = self.processes[effect.incarnation]
        assert process.model == effect.model
        assert not process.is_told_to_stop, "a child is told to stop once"
        process.is_told_to_stop = True
        for asked in self.requests.values():
            if asked.grant is None or asked.is_over or not asked.is_counted:
                continue
            if asked.grant.incarnation == effect.incarnation:
                assert asked.request in cut, f"{asked} is in flight on a child that is stopped"
        held = [job for job, incarnation in self.jobs.items() if incarnation == effect.incarnation]
        assert not held, f"{held} are held on a child that is stopped"
        if isinstance(effect, AbortStart):
            assert not process.is_ready, "only a start can be given up"

    def _grant(self, effect: Grant, *, is_repeated: bool) -> None:
        asked = self.requests[effect.request]
        if is_repeated and asked.grant is not None:
            assert effect.incarnation == asked.grant.incarnation
            return
        assert asked.answers == 0, f"{asked} gets one answer"
        process = self.processes[effect.incarnation]
        assert process.is_ready
        assert not process.is_told_to_stop, "granted on a child that stops"
        asked.answers += 1
        asked.grant = effect
        asked.is_counted = True

    def _record(self, effect: Record) -> None:
        match effect.decision:
            case "lease.lapsed" if effect.request is not None:
                self.requests[effect.request].is_counted = False
            case "lease.revived" | "lease.adopted" if effect.request is not None:
                self.requests[effect.request].is_counted = True
            case "job.held" if effect.lease is not None:
                [child] = [
                    process
                    for process in self.processes.values()
                    if process.model == effect.model
                    and process.is_ready
                    and not process.is_told_to_stop
                ]
                self.jobs[effect.lease] = child.incarnation
            case "job.ended" if effect.lease is not None:
                assert self.jobs[effect.lease] is not None, "what ends was held"
                self.jobs[effect.lease] = None
            case "model.pinned" if effect.model is not None:
                self.pinned.add(effect.model)
            case "listener.given_up":
                for asked in self.requests.values():
                    if asked.listener == effect.because:
                        asked.is_counted = False
            case _:
                pass

    def _refuse(self, effect: Refuse, *, is_repeated: bool) -> None:
        asked = self.requests[effect.request]
        if not is_repeated:
            assert asked.answers == 0, f"{asked} gets one answer"
            assert not asked.is_over
        asked.answers = 1
        asked.is_over = True

    def _cut(self, effect: Cut) -> None:
        asked = self.requests[effect.request]
        assert asked.grant is not None, "only a granted request is cut"
        asked.is_over = True
