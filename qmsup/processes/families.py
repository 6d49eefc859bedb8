"""Which processes came from which child. A command may be a script that starts the server, or starts several.

What came from a child is known by the marks that a stop goes by: its session, the nonce in its environment, and
descent from what has one of the two. Here one process is looked at rather than all: a driver names those that use its
cards, and they are few.
"""

import os
from collections.abc import Collection
from dataclasses import dataclass, field

from qmsup.processes import procfs
from qmsup.processes.child import NONCE_VARIABLE
from qmsup.processes.procfs import Stat

_DEEPEST = 32
"""So many generations are followed upward; a parent's stat may be of another process by the time it is read."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """The machine's memory that a child uses, by all of its processes, in bytes.

    Attributes:
        resident: with the files it has mapped, which others may share.
        private: without them.
    """

    resident: int
    private: int


@dataclass(slots=True, kw_only=True)
class _Family:
    """What came from one leader.

    Attributes:
        mark: what stands in the environment of each; "" until it could be read.
        members: by pid, the start of each process found so far, the leader's too.
    """

    leader: int
    start_ticks: int
    mark: str = ""
    members: dict[int, int] = field(default_factory=dict)


class Families:
    """Of the leaders that were named last. For one thread."""

    def __init__(self) -> None:
        self._families: dict[int, _Family] = {}
        self._strangers: dict[int, int] = {}

    def keep_only(self, leaders: Collection[int]) -> None:
        """Look after these, and forget all others. A leader that has ended meanwhile has no family."""
        for gone in self._families.keys() - set(leaders):
            del self._families[gone]
        for leader in leaders:
            if leader not in self._families and (stat := procfs.stat_of(leader)) is not None:
                self._families[leader] = _Family(
                    leader=leader,
                    start_ticks=stat.start_ticks,
                    members={leader: stat.start_ticks},
                )
                self._strangers.clear()  # one of them may be of this family

    def owner_of(self, pid: int) -> int | None:
        """The leader that a process came from; None = it is not ours, or is there no more, or cannot be looked at."""
        stat = procfs.stat_of(pid)
        if stat is None:
            return None
        try:
            family = self._family_of(stat, _DEEPEST)
        except OSError:
            return None
        if family is None:
            self._strangers[pid] = stat.start_ticks
            return None
        family.members[pid] = stat.start_ticks
        return family.leader

    def look_around(self) -> None:
        """Find members nobody has named. It takes some 20 µs for each process that may be one.

        Those are few when all leaders are young, as it is with one that starts: it is not to wait for this.
        """
        if not self._families:
            return
        first = min(self._families.values(), key=lambda family: (family.start_ticks, family.leader))
        oldest, among = first.start_ticks, procfs.pids_since(first.leader, first.start_ticks)
        try:
            stats = [stat for stat in procfs.all_stats(among) if stat.start_ticks >= oldest]
        except OSError:  # no descriptor is left to look with: who is known stays known
            return
        ours = {family.leader: family for family in self._families.values()}
        for stat in sorted(stats, key=lambda stat: stat.start_ticks):
            family = ours.get(stat.session) or ours.get(stat.parent)
            if family is not None and stat.start_ticks >= family.start_ticks:
                ours[stat.pid] = family
                family.members[stat.pid] = stat.start_ticks

    def pids(self) -> tuple[int, ...]:
        """Every member that is known and was there when it was last looked at."""
        return tuple(pid for family in self._families.values() for pid in family.members)

    def use_of(self, leader: int) -> Use | None:
        """The memory of a leader's family; None = nothing of it can be read. Members that have gone are forgotten."""
        family = self._families.get(leader)
        if family is None:
            return None
        resident = private = 0
        for pid, start_ticks in list(family.members.items()):
            pages, stat = procfs.pages_of(pid), procfs.stat_of(pid)
            if pages is not None and stat is not None and stat.start_ticks == start_ticks:
                resident += pages[0] * _PAGE
                private += pages[1] * _PAGE
            elif pid != leader:
                del family.members[pid]
        return Use(resident=resident, private=private) if resident else None

    def _family_of(self, stat: Stat, generations: int) -> _Family | None:
        for family in self._families.values():
            if family.members.get(stat.pid) == stat.start_ticks:
                return family
        if self._strangers.get(stat.pid) == stat.start_ticks:
            return None
        for family in self._families.values():
            if stat.start_ticks >= family.start_ticks and _bears(stat, family):
                return family
        parent = procfs.stat_of(stat.parent) if generations and stat.parent > 1 else None
        return None if parent is None else self._family_of(parent, generations - 1)


def _bears(stat: Stat, family: _Family) -> bool:
    """Whether a process has a mark of the family."""
    if stat.session == family.leader:
        return True
    family.mark = family.mark or _mark_of(family.leader)
    return bool(family.mark) and procfs.has_in_environ(stat.pid, family.mark)


def _mark_of(pid: int) -> str:
    nonce = procfs.value_in_environ(pid, NONCE_VARIABLE)
    return f"{NONCE_VARIABLE}={nonce}" if nonce else ""
