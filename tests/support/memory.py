"""A reader of the memory that says what a test wants, and what the telemetry made of it."""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from qmsup.core.vram.sample import Card, Ram, Sample, Use
from qmsup.units import MiB
from tests.support.children import PATIENCE, is_alive

E = TypeVar("E")


def sample_of(
    used: int, uses: Mapping[int, int | None] | None = None, *, total: int = 24000
) -> Sample:
    """One card: so much is used of it, and by these pids so much each."""
    card = Card(uuid="u1", name="card", total=MiB(total), used=MiB(used), has_processes=True)
    held = {pid: None if size is None else MiB(size) for pid, size in (uses or {}).items()}
    return Sample(
        cards=(card,),
        uses=tuple(Use(pid=pid, card="u1", used=size) for pid, size in held.items()),
        ram=Ram(total=MiB(64000), available=MiB(50000)),
    )


@dataclass(slots=True)
class ScriptedReader:
    """Says the same until told to say something else.

    Attributes:
        says: what a read returns, or raises.
        reads: the pids asked for each time.
        may_answer: cleared, a read hangs.
    """

    says: Sample | Exception = field(default_factory=lambda: sample_of(1500))
    reads: list[Collection[int] | None] = field(default_factory=list)
    closed: int = 0
    may_answer: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.may_answer.set()

    def read(self, pids: Collection[int] | None = None) -> Sample:
        self.reads.append(pids)
        self.may_answer.wait(PATIENCE)
        if isinstance(self.says, Exception):
            raise self.says
        return self.says

    def close(self) -> None:
        self.closed += 1


@dataclass(slots=True)
class LiveCard:
    """A reader of a card on which each living process with `--holds N` in its command holds so much.

    Attributes:
        foreign: what others use.
        lag: for so many seconds the memory of a dead process is still in use.
        fails: reading raises.
        fullest: the most that was ever in use.
    """

    foreign: int = 1500
    total: int = 24000
    lag: float = 0.0
    fails: bool = False
    fullest: int = 0
    _held: dict[int, tuple[int, float]] = field(default_factory=dict)

    def read(self, pids: Collection[int] | None = None) -> Sample:
        if self.fails:
            raise RuntimeError("the bus is gone")
        now = time.monotonic()
        holds = {pid: size for pid in pids or () if (size := _held_by(pid))}
        self._held.update({pid: (size, now) for pid, size in holds.items()})
        self._held = {pid: at for pid, at in self._held.items() if now - at[1] <= self.lag}
        used = self.foreign + sum(size for size, _ in self._held.values())
        self.fullest = max(self.fullest, used)
        return sample_of(used, holds, total=self.total)

    def close(self) -> None:
        """Nothing is open."""


class Told:
    """What was reported, in order; a test waits on it."""

    def __init__(self) -> None:
        self.all: list[object] = []
        self._news = threading.Condition()

    def __call__(self, told: object) -> None:
        with self._news:
            self.all.append(told)
            self._news.notify_all()

    def of(self, kind: type[E]) -> list[E]:
        """What is of this kind."""
        return [each for each in self.all if isinstance(each, kind)]

    def waits_for(self, kind: type[E], fits: Callable[[E], bool] = lambda _: True) -> E:
        """The first of this kind for which this holds, now or in a while."""
        with self._news:
            found = self._news.wait_for(lambda: [e for e in self.of(kind) if fits(e)], PATIENCE)
            assert found, f"no such {kind.__name__} in {self.all}"
            return found[0]


def _held_by(pid: int) -> int:
    if not is_alive(pid):
        return 0
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return 0
    return int(words[words.index("--holds") + 1]) if "--holds" in words else 0
