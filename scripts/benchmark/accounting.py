"""What processes use, read from the kernel: CPU time, memory, threads, and who descends from whom."""

import math
import os
import time
from collections.abc import Iterable
from pathlib import Path

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024


def cpu_seconds(pids: Iterable[int]) -> float:
    """User and system time that these processes have used, all threads, also ended ones.

    The kernel's CPU-time clock of a process is read, in nanoseconds: /proc counts in ticks of 10 ms, too
    coarse for a proxy that uses 30 ms in a window. Processes that are gone count nothing.
    """
    return sum(_cpu_of(pid) for pid in pids)


def _cpu_of(pid: int) -> float:
    clock = (~pid << 3) | 2  # clock_getcpuclockid(3): the scheduler's clock of a whole process
    try:
        return time.clock_gettime(clock)
    except OSError:
        fields = _stat(pid)
        return (int(fields[11]) + int(fields[12])) / _TICKS if fields else 0.0


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the command's name: [0] state, [1] parent, [11] user, [12] system."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def started_at(pid: int) -> float:
    """When a process was started, in seconds since boot (CLOCK_BOOTTIME), to 10 ms; nan when it is gone."""
    fields = _stat(pid)
    return int(fields[19]) / _TICKS if fields else math.nan


def descendants(root: int) -> list[int]:
    """Every living process below `root`, zombies left out."""
    below: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdecimal() and (fields := _stat(int(entry.name))) and fields[0] != "Z":
            below.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [*below.get(root, ())]
    for pid in found:
        found += below.get(pid, ())
    return found


def command(pid: int) -> str:
    """The command line, arguments joined by spaces; empty when the process is gone."""
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except OSError:
        return ""


def resident_kib(pid: int) -> int:
    """Resident memory; 0 when the process is gone."""
    try:
        return int((_PROC / str(pid) / "statm").read_text().split()[1]) * _PAGE_KIB
    except OSError:
        return 0


def threads(pid: int) -> int:
    """The number of threads; 0 when the process is gone."""
    fields = _stat(pid)
    return int(fields[17]) if fields else 0
