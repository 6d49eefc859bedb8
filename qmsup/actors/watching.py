"""The scheduler actor's side of the telemetry: who is there is told to it, and what it saw last is kept to be shown."""

import contextlib
import time
from collections.abc import Callable

import pykka

from qmsup.actors.sampling import SampleReader
from qmsup.actors.sightings import (
    Kept,
    LookedAt,
    MemorySeen,
    ReadNow,
    WatchOnly,
    is_spawning,
    watch_only,
)
from qmsup.actors.telemetry import TelemetryActor
from qmsup.core.scheduling.effects import AbortStart, Effect, EnsureReady, ReadMemory, Stop
from qmsup.core.scheduling.events import (
    Event,
    ProcessFailed,
    ProcessReady,
    ProcessStarting,
    ProcessStopped,
)
from qmsup.core.scheduling.state import State
from qmsup.core.vram.reading import Reading
from qmsup.ids import Incarnation
from qmsup.log import Log
from qmsup.units import Seconds

_TOLD_AGAIN = Seconds(20.0)
"""So long one look at the readings stands for others."""
_SPAWNS_WITHIN = Seconds(0.1)
_FIRST_PAUSE = Seconds(1.0)
_LONGEST_PAUSE = Seconds(60.0)
_DOES_WELL = Seconds(60.0)
"""A telemetry that has lived for so long is not the one that breaks again and again."""
_log = Log("telemetry")

_ORDERS = frozenset({EnsureReady, Stop, AbortStart})
"""What is told to the owners of children."""
_NO_TELEMETRY = Reading(because="no memory is read here")


class Watching:
    """For the scheduler actor's thread alone. Without a reader it does nothing."""

    def __init__(
        self,
        open_reader: Callable[[], SampleReader] | None,
        report: Callable[[Event | MemorySeen], None],
        kept: Kept | None = None,
    ) -> None:
        """Start nothing yet: whoever is there already must be known before the first look.

        Args:
            open_reader: makes what reads; None = nothing is read.
            report: takes the telemetry's news, in its thread.
            kept: what one that breaks leaves to the next, and to whom else it is of use.
        """
        self._open_reader = open_reader

        def tell(news: Event | MemorySeen) -> None:
            with contextlib.suppress(pykka.ActorDeadError):  # the process is ending
                report(news)

        self._report = tell
        self._telemetry: pykka.ActorRef[TelemetryActor] | None = None
        self._told: WatchOnly | None = None
        self._pids: dict[Incarnation, int] = {}
        self._is_stale = True
        self._is_read_now = False
        self._spawning_since: Seconds | None = None
        self._kept = Kept() if kept is None else kept
        self._pause = _FIRST_PAUSE
        self._started_at = Seconds(float("-inf"))
        self.due: Seconds | None = None
        """When a telemetry that broke is started anew, by `tell`."""
        self._shown_at = Seconds(float("-inf"))
        self.reading = _NO_TELEMETRY if open_reader is None else Reading()
        """The newest, to be shown."""

    def stir(self) -> None:
        """Who is there may have changed."""
        self._is_stale = True

    def ordered(self, effect: Effect) -> None:
        """Something was ordered: who is there may have changed by that, or the memory is to be read."""
        if type(effect) in _ORDERS:
            self._is_stale = True
        elif type(effect) is ReadMemory:
            self._is_read_now = True

    def heard(self, event: object) -> None:
        """Something was told of a child, perhaps."""
        match event:
            case ProcessStarting(incarnation=incarnation, pid=pid):
                self._pids[incarnation] = pid
            case ProcessStopped(incarnation=incarnation) | ProcessFailed(incarnation=incarnation):
                self._pids.pop(incarnation, None)
            case ProcessReady():
                pass
            case _:
                return
        self._is_stale = True

    def tell(self, state: State) -> None:
        """Tell the telemetry who is there, if that is news, and then what is asked. The first time starts it."""
        now = _now()
        if self._kept.has_broken:
            self._plan_another(now)
        is_time = self.due is None or now >= self.due
        if self._is_stale and is_time and not self._is_better_told_later(state, now):
            self._is_stale = False
            self._tell_who_is_there(state, now)
        if self._is_read_now:
            self._is_read_now = False
            self._send(ReadNow())

    def _is_better_told_later(self, state: State, now: Seconds) -> bool:
        """Whether the start of a process is about to be told of: it would be delayed by telling what will be told anew.

        A process that takes longer to start is not waited for.
        """
        may_wait = self._telemetry is not None and not self._is_read_now
        if not (may_wait and is_spawning(state)):
            self._spawning_since = None
            return False
        if self._spawning_since is None:
            self._spawning_since = now
        return now - self._spawning_since < _SPAWNS_WITHIN

    def _plan_another(self, now: Seconds) -> None:
        """What broke is started anew, later each time unless it did well in between."""
        self._kept.has_broken = False
        if now - self._started_at >= _DOES_WELL:
            self._pause = _FIRST_PAUSE
        self.due = Seconds(now + self._pause)
        _log.warning("telemetry.starts_anew", after_s=self._pause)
        self._pause = min(_LONGEST_PAUSE, Seconds(self._pause * 2))
        self._telemetry = self._told = None
        self._is_stale = True

    def _tell_who_is_there(self, state: State, now: Seconds) -> None:
        if self._telemetry is None and self._open_reader is not None:
            self._started_at, self.due = now, None
            self._telemetry = TelemetryActor.start(
                open_reader=self._open_reader, report=self._report, kept=self._kept
            )
        told = watch_only(state, self._pids)
        if told != self._told:
            self._told = told
            self._send(told)

    def shown(self, now: Seconds) -> Reading:
        """The newest reading, for somebody who most likely looks again: it is renewed more often from now on."""
        if now - self._shown_at >= _TOLD_AGAIN:
            self._shown_at = now
            self._send(LookedAt())
        return self.reading

    def _send(self, message: WatchOnly | LookedAt | ReadNow) -> None:
        if self._telemetry is not None:
            with contextlib.suppress(pykka.ActorDeadError):  # it broke, or the process is ending
                self._telemetry.tell(message)


def _now() -> Seconds:
    return Seconds(time.monotonic())
