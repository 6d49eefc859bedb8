"""Runs a recorded life through a fresh scheduler: the same turns must come of the same events.

A bug seen on a box starts here: its journal, dumped, fails in a test until the core is mended.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from qmsup.actors.journal_lines import Header, is_kept, read
from qmsup.core.scheduling.effects import Effect
from qmsup.core.scheduling.scheduler import Scheduler
from qmsup.core.scheduling.stories import Turn


@dataclass(slots=True)
class RecordedLife:
    """One life of a scheduler, as far as its journal tells.

    Attributes:
        header: None when the segment with the life's beginning has been removed.
        unreadable: lines in it that say nothing: torn ones, or another version's.
    """

    header: Header | None
    turns: list[Turn] = field(default_factory=list)
    unreadable: int = 0

    @property
    def gap(self) -> str:
        """Why it cannot be replayed; "" when it is whole."""
        if self.header is None:
            return "its beginning is no longer in the journal"
        if self.unreadable:
            return f"{self.unreadable} of its lines cannot be read"
        numbers = [0, *(turn.number for turn in self.turns)]
        for before, after in pairwise(numbers):
            if after != before + 1:
                return f"nothing is recorded between turns {before} and {after}"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Where a replay came to something else."""

    turn: Turn
    replayed: list[Effect]


def lives_in(lines: Iterable[bytes]) -> list[RecordedLife]:
    """The lives that a journal tells of, oldest first."""
    lives: list[RecordedLife] = []
    for line in lines:
        match read(line) if line.strip() else b"":
            case Header() as header:
                lives.append(RecordedLife(header))
            case Turn() as turn:
                _last_of(lives).turns.append(turn)
            case None:
                _last_of(lives).unreadable += 1
            case _:
                pass
    return lives


def replay(life: RecordedLife) -> Iterator[Difference]:
    """Every turn that comes out otherwise; none when the core does what it did.

    Raises:
        ValueError: the life is not whole, so there is nothing to replay it from.
    """
    if life.header is None or life.gap:
        raise ValueError(f"this life cannot be replayed: {life.gap}")
    scheduler = Scheduler(life.header.spec, life.header.first_incarnation)
    for turn in life.turns:
        came = [e for e in scheduler.handle(turn.event, turn.now) if is_kept(e)]
        if came != [e for e in turn.effects if is_kept(e)]:
            yield Difference(turn=turn, replayed=came)


def _last_of(lives: list[RecordedLife]) -> RecordedLife:
    if not lives:
        lives.append(RecordedLife(None))
    return lives[-1]
