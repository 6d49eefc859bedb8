"""Everything that happens by itself when time passes. The earliest of all is the one wake that is armed."""

import heapq
from dataclasses import dataclass
from typing import Generic, TypeVar

from qmsup.units import Seconds

T = TypeVar("T")

_FEW = 64
"""Below this many entries, cancelled ones are not worth clearing out."""


@dataclass(slots=True, eq=False)
class Alarm:
    """One deadline, as its owner keeps it. A cancelled one is dropped when it comes to the top."""

    at: Seconds
    is_live: bool = True


class Deadlines(Generic[T]):
    """A heap of alarms."""

    __slots__ = ("_added", "_heap", "_live")

    def __init__(self) -> None:
        self._heap: list[tuple[Seconds, int, Alarm, T]] = []
        self._added = 0
        self._live = 0

    def __len__(self) -> int:
        """The number of deadlines that still count."""
        return self._live

    def add(self, at: Seconds, subject: T) -> Alarm:
        """Have `subject` returned by `due` at this time."""
        alarm = Alarm(at)
        self._added += 1
        self._live += 1
        heapq.heappush(self._heap, (at, self._added, alarm, subject))
        return alarm

    def cancel(self, alarm: Alarm | None) -> None:
        """Forget a deadline; one that has come, or is None, is ignored."""
        if alarm is None or not alarm.is_live:
            return
        alarm.is_live = False
        self._live -= 1
        if len(self._heap) > _FEW and self._live * 2 < len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].is_live]
            heapq.heapify(self._heap)

    def earliest(self) -> Seconds | None:
        """When the next deadline comes."""
        heap = self._heap
        while heap:
            at, _, alarm, _ = heap[0]
            if alarm.is_live:
                return at
            heapq.heappop(heap)
        return None

    def may_be_due(self, now: Seconds) -> bool:
        """Whether `take_due` is worth a call."""
        heap = self._heap
        return bool(heap) and heap[0][0] <= now

    def take_due(self, now: Seconds) -> T | None:
        """The next subject whose time has come; its alarm is spent. One at a time: each may cancel others."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            _, _, alarm, subject = heapq.heappop(heap)
            if alarm.is_live:
                alarm.is_live = False
                self._live -= 1
                return subject
        return None
