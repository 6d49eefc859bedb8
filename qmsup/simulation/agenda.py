"""Virtual time: what is to happen when. Nothing else moves the clock, so the same agenda always runs the same way."""

import heapq
from collections.abc import Callable

from qmsup.errors import InvariantBrokenError
from qmsup.units import Seconds

Action = Callable[[], None]

_TURNS = 10_000
"""Wakes at one instant: more than this many, and the scheduler would never let time pass again."""


class Agenda:
    """A clock, a heap of actions, and the one wake that the scheduler wants.

    Attributes:
        now: it never runs backwards.
        wake: when `on_wake` is called next; None = not at all.
    """

    __slots__ = ("_added", "_heap", "now", "wake")

    def __init__(self) -> None:
        self.now = Seconds(0.0)
        self.wake: Seconds | None = None
        self._heap: list[tuple[Seconds, int, Action]] = []
        self._added = 0

    def at(self, when: float, action: Action) -> None:
        """Have something done; of two at the same time, the one said first."""
        self._added += 1
        heapq.heappush(self._heap, (Seconds(max(when, self.now)), self._added, action))

    def after(self, wait: Seconds, action: Action) -> None:
        """Have something done a while from now."""
        self.at(self.now + wait, action)

    def run(self, on_wake: Action, is_over: Callable[[], bool]) -> None:
        """Do everything in its time, until it is over or there is nothing left to do."""
        heap = self._heap
        turns = 0
        while not is_over():
            wake = self.wake
            if wake is not None and (not heap or wake <= heap[0][0]):
                # Like a real timer it is spent once it rings.
                self.wake = None
                turns = 0 if wake > self.now else turns + 1
                if turns > _TURNS:
                    raise InvariantBrokenError(
                        f"the scheduler wants to be woken for ever at {self.now}"
                    )
                self.now = Seconds(max(wake, self.now))
                on_wake()
            elif heap:
                self.now, _, action = heapq.heappop(heap)
                action()
            else:
                return
