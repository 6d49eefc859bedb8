"""Stands in for the owners of child processes: a start, a stop and a failure take the time they are said to take."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

from qmsup.core.scheduling.events import (
    ProcessFailed,
    ProcessReady,
    ProcessStarting,
    ProcessStopped,
)
from qmsup.ids import Incarnation, ModelId
from qmsup.simulation.agenda import Agenda
from qmsup.units import Seconds

Report = ProcessStarting | ProcessReady | ProcessStopped | ProcessFailed

LOAD = Seconds(5.0)
"""What a load takes where nothing is said: some gigabytes from a page cache or a fast disk."""
STOP = Seconds(0.3)
"""What a stop takes: a child that heeds TERM at once, and its memory given back."""
_PORT = 5800


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long children take.

    Attributes:
        loads, stops: per model, where it differs.
        fails: how many of a model's first starts fail, after the time of a load.
    """

    load: Seconds = LOAD
    stop: Seconds = STOP
    loads: Mapping[ModelId, Seconds] = field(default_factory=dict)
    stops: Mapping[ModelId, Seconds] = field(default_factory=dict)
    fails: Mapping[ModelId, int] = field(default_factory=dict)

    def load_of(self, model: ModelId) -> Seconds:
        """What this model's load takes."""
        return self.loads.get(model, self.load)

    def stop_of(self, model: ModelId) -> Seconds:
        """What this model's stop takes."""
        return self.stops.get(model, self.stop)


class _Phase(StrEnum):
    WAITING = "waiting"
    """The model's former child is not gone yet."""
    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"


@dataclass(slots=True, eq=False)
class _Child:
    model: ModelId
    incarnation: Incarnation
    phase: _Phase = _Phase.WAITING


class Children:
    """Every child of every model."""

    def __init__(self, pace: Pace, agenda: Agenda, tell: Callable[[Report], None]) -> None:
        """None runs yet.

        Args:
            pace: how long things take.
            agenda: where they are noted.
            tell: hears what becomes of each child.
        """
        self._pace = pace
        self._agenda = agenda
        self._tell = tell
        self._children: dict[Incarnation, _Child] = {}
        self._of_model: defaultdict[ModelId, list[_Child]] = defaultdict(list)
        self._failures: dict[ModelId, int] = dict(pace.fails)

    def bring_up(self, model: ModelId, incarnation: Incarnation) -> None:
        """Start a child, once the model's former one is gone."""
        child = _Child(model, incarnation)
        self._children[incarnation] = child
        self._of_model[model].append(child)
        self._start_next(model)

    def stop(self, incarnation: Incarnation) -> None:
        """Stop a child, or give up its start; one that is gone, or stops already, is left alone."""
        child = self._children.get(incarnation)
        if child is None or child.phase is _Phase.STOPPING:
            return
        never_ran = child.phase is _Phase.WAITING
        child.phase = _Phase.STOPPING
        wait = Seconds(0.0) if never_ran else self._pace.stop_of(child.model)
        self._agenda.after(wait, partial(self._stopped, child))

    def _start_next(self, model: ModelId) -> None:
        children = self._of_model[model]
        if not children or children[0].phase is not _Phase.WAITING:
            return
        child = children[0]
        child.phase = _Phase.STARTING
        self._tell(
            ProcessStarting(
                model=model, incarnation=child.incarnation, pid=child.incarnation, port=_PORT
            )
        )
        self._agenda.after(self._pace.load_of(model), partial(self._loaded, child))

    def _loaded(self, child: _Child) -> None:
        if child.phase is not _Phase.STARTING:
            return
        if self._failures.get(child.model, 0) > 0:
            self._failures[child.model] -= 1
            failed = ProcessFailed(
                model=child.model,
                incarnation=child.incarnation,
                reason="this start fails in the simulation",
            )
            self._ended(child, failed)
            return
        child.phase = _Phase.READY
        self._tell(
            ProcessReady(
                model=child.model,
                incarnation=child.incarnation,
                upstream=f"127.0.0.1:{_PORT}",
                pid=child.incarnation,
            )
        )

    def _stopped(self, child: _Child) -> None:
        self._ended(child, ProcessStopped(model=child.model, incarnation=child.incarnation))

    def _ended(self, child: _Child, report: ProcessStopped | ProcessFailed) -> None:
        del self._children[child.incarnation]
        self._of_model[child.model].remove(child)
        self._tell(report)
        self._start_next(child.model)
