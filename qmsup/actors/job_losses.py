"""Jobs that their server broke off before it had begun them: what it died of is known a moment later.

Its connection ends before its process does, and who looks after that leaves word of how it ended. So who waits for the
answer waits that moment longer; the job's lease and its turn do not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from qmsup import child_ends
from qmsup.ids import Incarnation
from qmsup.units import Seconds

_WITHIN = Seconds(1.0)
_LOOK_AGAIN = Seconds(0.02)


@dataclass(frozen=True, slots=True)
class _Loss:
    log: Path
    incarnation: Incarnation
    until: Seconds
    tell: Callable[[str], None]


class Losses:
    """For one thread."""

    def __init__(self) -> None:
        """Nothing is lost."""
        self._losses: list[_Loss] = []
        self._next = Seconds(0.0)

    @property
    def due(self) -> Seconds | None:
        """When `work` is wanted next; None = nobody waits."""
        return self._next if self._losses else None

    def add(
        self, log: Path, incarnation: Incarnation, now: Seconds, tell: Callable[[str], None]
    ) -> None:
        """A start of a model broke off.

        Args:
            log: the program's.
            incarnation: which start of it.
            now: on the clock of `due`.
            tell: called once, by `work`, with what it ended of; "" where that did not come to be known.
        """
        self._losses.append(_Loss(log, incarnation, Seconds(now + _WITHIN), tell))
        self._next = now

    def work(self, now: Seconds) -> None:
        """Look whether more is known by now."""
        if not self._losses or now < self._next:
            return
        self._next = Seconds(now + _LOOK_AGAIN)
        found = [(loss, child_ends.found(loss.log, loss.incarnation)) for loss in self._losses]
        over = [(loss, words) for loss, words in found if words or now >= loss.until]
        self._losses = [loss for loss, words in found if not words and now < loss.until]
        for loss, words in over:
            loss.tell(words)
