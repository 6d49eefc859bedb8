"""What a box is made of once it is quiet: whom nobody knows, and whether its parts stay as small as they were."""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

import psutil

from tests.support.box import Box

_WARM_UP = 2
"""Readings that do not count: pools fill, modules are imported."""
_FEWEST = 9
_SWING = 2
"""Descriptors that come and go."""
_MORE_IN_A_WORKER = (11, 3)
"""Descriptors and threads that a worker may gain: an onlooker has come to it, as the one that it was at is gone (the
feed and a thread for it, the log of each model), and its pool has met two more requests at once. Whatever is left
behind by each round is more than that by the last third of a life that is judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One part at one time."""

    fds: int
    threads: int
    memory_kib: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A process of qmsup's own; another with the same pid is another member."""

    name: str
    pid: int
    born: float


def members(box: Box) -> dict[Member, psutil.Process]:
    """All that is qmsup itself: serve, the scheduler, listeners and their workers. No children."""
    serve = psutil.Process(box.process.pid)
    found = [serve]
    for part in box.parts():
        found.append(part)
        if "listener" in part.cmdline()[3:4]:
            found += part.children()
    ours = [process for process in found if process is serve or _is_ours(process)]
    return {_member(process, serve): process for process in ours}


def _is_ours(process: psutil.Process) -> bool:
    return process.cmdline()[1:3] == ["-m", "qmsup"]


def _member(process: psutil.Process, serve: psutil.Process) -> Member:
    name = " ".join(process.cmdline()[3:5]).removesuffix(" -c") if process != serve else "serve"
    if name.startswith("listener") and process.ppid() != serve.pid:
        name = name.replace("listener", "worker")
    return Member(name=name, pid=process.pid, born=process.create_time())


def strangers(box: Box, children: Iterable[int]) -> list[str]:
    """Processes of the box that are neither qmsup's own nor these children or theirs, one line each."""
    known = {process.pid for process in members(box).values()}
    for pid in children:
        with contextlib.suppress(psutil.NoSuchProcess):
            known |= {pid, *(p.pid for p in psutil.Process(pid).children(recursive=True))}
    found = [process for process in box.processes() if process.pid not in known]
    lines = [f"process {_title(process)}" for process in found if process.is_running()]
    return lines + [f"zombie {process.pid}" for process in _zombies(box)]


def _zombies(box: Box) -> list[psutil.Process]:
    """The dead whom nobody has buried. Serve is the parent of all who lost theirs."""
    serve = psutil.Process(box.process.pid)
    return [
        process
        for process in serve.children(recursive=True)
        if process.is_running() and process.status() == psutil.STATUS_ZOMBIE
    ]


def _title(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return f"{process.pid} {' '.join(process.cmdline()[-8:])}"
    return str(process.pid)


def size_of(process: psutil.Process) -> Size:
    """As it is now."""
    with process.oneshot():
        return Size(
            fds=process.num_fds(),
            threads=process.num_threads(),
            memory_kib=process.memory_info().rss // 1024,
        )


class Ledger:
    """The sizes of every member over its life."""

    def __init__(self) -> None:
        self._sizes: dict[Member, list[Size]] = {}

    def enter(self, member: Member, size: Size) -> None:
        """One more reading, taken while nothing was going on."""
        self._sizes.setdefault(member, []).append(size)

    def growth(self) -> list[str]:
        """Who grows, one line each. Only who lived long enough to tell is judged."""
        return [
            f"{member.name} (pid {member.pid}): {words}"
            for member, sizes in self._sizes.items()
            if len(sizes) >= _FEWEST
            for words in grows(sizes[_WARM_UP:], is_worker=member.name.startswith("worker"))
        ]

    def longest(self) -> Iterable[str]:
        """For each kind of member the one that lived longest, with its first and last size."""
        best: dict[str, list[Size]] = {}
        for member, sizes in self._sizes.items():
            if len(sizes) > len(best.get(member.name, [])):
                best[member.name] = sizes
        for name, sizes in sorted(best.items()):
            first, last = sizes[min(_WARM_UP, len(sizes) - 1)], sizes[-1]
            yield (
                f"{name}: {len(sizes)} readings, fds {first.fds} -> {last.fds}, threads"
                f" {first.threads} -> {last.threads}, memory {first.memory_kib} -> {last.memory_kib} KiB"
            )


def grows(sizes: list[Size], *, is_worker: bool = False) -> list[str]:
    """What has become more, by the smallest of the last third against the largest of the first.

    Args:
        sizes: in order.
        is_worker: an onlooker may have come to it meanwhile, and its pool may have grown.
    """
    more_fds, more_threads = _MORE_IN_A_WORKER if is_worker else (0, 0)
    third = max(1, len(sizes) // 3)
    first, last = sizes[:third], sizes[-third:]
    grown = []
    most = (then := max(s.fds for s in first)) + _SWING + more_fds
    if (now := min(s.fds for s in last)) > most:
        grown.append(f"descriptors {then} -> {now}")
    most = (then := max(s.threads for s in first)) + more_threads
    if (now := min(s.threads for s in last)) > most:
        grown.append(f"threads {then} -> {now}")
    then, now = (int(median(s.memory_kib for s in part)) for part in (first, last))
    if now > then * 1.1 + 4096:
        grown.append(f"memory {then} -> {now} KiB")
    return grown
