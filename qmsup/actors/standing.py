"""Keeps how things stand for the scheduler's next life, at most once a second, and jobs' leases at once."""

import json
import time
from dataclasses import dataclass, field
from typing import Any

from qmsup.actors import plain_values
from qmsup.actors.sightings import Kept
from qmsup.actors.state_store import StateOnDisk
from qmsup.core.scheduling.inheritance import KeptJob, Recovered
from qmsup.core.scheduling.standing import Standing, standing_of
from qmsup.core.scheduling.state import State
from qmsup.core.vram.floor import Floor
from qmsup.ids import WorkerId
from qmsup.log import Log
from qmsup.processes import procfs
from qmsup.units import MiB, Seconds

_VERSION = 1
_PERIOD = Seconds(1.0)

_log = Log("state")


@dataclass(frozen=True, slots=True, kw_only=True)
class LivingWorker:
    """A listener's worker of a former life that lives on."""

    worker: WorkerId
    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Former:
    """How things stood at the end of a former life. Its times count from now."""

    workers: tuple[LivingWorker, ...]
    event: Recovered
    floor: Floor = field(default_factory=Floor)


class StandingKeeper:
    """For the scheduler actor's thread alone."""

    def __init__(self, store: StateOnDisk, offset: float, memory: Kept | None = None) -> None:
        """Nothing is kept yet.

        Args:
            store: takes what is to be kept.
            offset: what makes Unix seconds of the scheduler's clock.
            memory: what was learnt of the GPU memory; None = nothing is.
        """
        self._memory = Kept() if memory is None else memory
        self._store = store
        self._offset = offset
        self._due: Seconds | None = None
        self._is_urgent = False
        self._kept = ""
        self._ticks: dict[int, int] = {}

    @property
    def due(self) -> Seconds | None:
        """When `keep` is wanted; None = nothing happened since."""
        return self._due

    def stir(self, now: Seconds) -> None:
        """Something happened."""
        if self._due is None:
            self._due = Seconds(now + _PERIOD)

    @property
    def is_urgent(self) -> bool:
        """Whether `keep` is wanted before the next wait."""
        return self._is_urgent

    def hurry(self) -> None:
        """Something happened that must not be lost."""
        self._is_urgent = True

    def keep(self, state: State, *, ends: bool = False) -> None:
        """Hand over how things stand, if that is news.

        Args:
            state: how they stand.
            ends: this life does, as it should. Then the next one learns anew what others use of the cards at rest, as
                it does when somebody starts it because he thinks that wrong.
        """
        self._due = None
        self._is_urgent = False
        text = self._text(standing_of(state), Floor() if ends else self._memory.floor)
        if text != self._kept:
            self._kept = text
            self._store.keep_standing(text)

    def _text(self, standing: Standing, floor: Floor) -> str:
        pids = {worker.pid for worker in standing.workers}
        self._ticks = {pid: self._ticks.get(pid) or _ticks_of(pid) for pid in pids}
        return json.dumps(
            {
                "version": _VERSION,
                "boot": procfs.boot_id(),
                "offset": self._offset,
                "ticks": self._ticks,
                "floor": [[sorted(cards), size] for cards, size in floor.lowest.items()],
                "standing": plain_values.plain(standing),
            }
        )


def read_former(text: str, offset: float) -> Former | None:
    """How things stood, by what was kept; None where that says nothing to this version.

    Args:
        text: what was kept.
        offset: what makes Unix seconds of this scheduler's clock.
    """
    if not text:
        return None
    try:
        told = json.loads(text)
        if told["version"] != _VERSION:
            return None
        standing: Standing = plain_values.restored(Standing, told["standing"])
        is_same_boot = told["boot"] == procfs.boot_id()
        workers = _living(standing, told) if is_same_boot else ()
        # Until the box starts anew all processes have one clock that nobody sets; the wall clock may have jumped.
        shift = 0.0 if is_same_boot else float(told["offset"]) - offset
        floor = _floor(told) if is_same_boot else Floor()
        return Former(workers=workers, event=_event(standing, shift), floor=floor)
    except (
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        # Whatever is wrong with it: it makes a start better, and must never hinder one.
        _log.warning("state.standing_unreadable", because=repr(error))
        return None


def _living(standing: Standing, told: dict[str, Any]) -> tuple[LivingWorker, ...]:
    ticks = {int(pid): start for pid, start in told["ticks"].items()}
    return tuple(
        LivingWorker(worker=each.worker, pid=each.pid)
        for each in standing.workers
        if ticks.get(each.pid) and _ticks_of(each.pid) == ticks[each.pid]
    )


def _floor(told: dict[str, Any]) -> Floor:
    """What others used of the cards at rest; a former release kept nothing of it."""
    lowest = {frozenset(map(str, cards)): MiB(int(size)) for cards, size in told.get("floor", ())}
    return Floor(lowest=lowest)


def _event(standing: Standing, shift: float) -> Recovered:
    """`shift` makes times of this life's clock of those of the former one."""
    now = time.monotonic()
    return Recovered(
        jobs=tuple(
            KeptJob(
                lease=job.lease,
                model=job.model,
                owner=job.owner,
                purpose=job.purpose,
                left=Seconds(job.until + shift - now),
            )
            for job in standing.jobs
        ),
        order=standing.order,
        holds=tuple((model, Seconds(until + shift - now)) for model, until in standing.holds),
        pins=standing.pins,
        is_draining=standing.is_draining,
    )


def _ticks_of(pid: int) -> int:
    stat = procfs.stat_of(pid)
    return stat.start_ticks if stat is not None and stat.is_alive else 0
