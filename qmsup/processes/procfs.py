"""What Linux says of a process: its parent, session, start and environment. A pid alone proves nothing."""

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from qmsup.open_files import is_used_up
from qmsup.units import Seconds

_PROC = Path("/proc")
_GPUS = ("/dev/nvidia", "/dev/kfd", "/dev/dri/render")
_EXIT_SIGNAL = 35
"""Of the fields of a stat, from the state on (proc_pid_stat(5) counts from two before)."""
_FEW = 64
"""So many pids are tried faster than all there are are listed."""
_PIDS_PER_SECOND = 100_000
"""More than any machine gives away: so long it takes at least until pids start anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat:
    """A moment of one process.

    Attributes:
        start_ticks: clock ticks from boot to its start. With the pid and the boot it names one process for ever.
    """

    pid: int
    state: str
    parent: int
    group: int
    session: int
    start_ticks: int

    @property
    def is_alive(self) -> bool:
        """Not a zombie: one of those holds no memory and no port."""
        return self.state not in "ZXx"


def stat_of(pid: int) -> Stat | None:
    """The process with this pid, zombies included; None when there is none, or it cannot be looked at."""
    try:
        return read_stat(pid)
    except OSError:
        return None


def read_stat(pid: int) -> Stat | None:
    """The process with this pid, zombies included; None when there is none: for who acts on that.

    Raises:
        OSError: no descriptor is left to look with, which says nothing of the process.
    """
    try:
        line = _read(f"{pid}/stat")
    except OSError as error:
        if is_used_up(error):
            raise
        return None
    # The name stands in parentheses and may itself hold spaces and parentheses.
    fields = line[line.rindex(b")") + 2 :].split()
    if (
        fields[_EXIT_SIGNAL] == b"-1"
    ):  # a thread: /proc lists none of them, and has each by its number
        return None
    return Stat(
        pid=pid,
        state=fields[0].decode(),
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        start_ticks=int(fields[19]),
    )


def _read(name: str) -> bytes:
    """A file below `/proc`, for hundreds at once.

    Raises:
        OSError: the process is gone, or not to be looked at.
    """
    with open(f"{_PROC}/{name}", "rb", buffering=0) as file:  # noqa: PTH123 - a Path is dearer than the file
        return file.read()


def all_stats(among: range | None = None) -> Iterator[Stat]:
    """Every process there is, or that has one of these pids, each at the moment it is looked at.

    Raises:
        OSError: no descriptor is left to look with.
    """
    for pid in _pids() if among is None or len(among) > _FEW else among:
        if among is None or pid in among:
            stat = read_stat(pid)
            if stat is not None:
                yield stat


def _pids() -> list[int]:
    names = os.listdir(_PROC)  # noqa: PTH208 - thousands of entries, of which only the name is needed
    return [int(name) for name in names if name.isdigit()]


def last_pid() -> int | None:
    """The pid given away last, as far as can be told. They go upward, and start anew at the end."""
    try:
        return int(_read("loadavg").split()[-1])
    except (OSError, ValueError, IndexError):
        return None


def pid_max() -> int:
    """Where pids start anew."""
    return int(_read("sys/kernel/pid_max"))


def age_of(start_ticks: int) -> Seconds:
    """How long ago a process of this boot was started; time in which the machine slept counts."""
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    return Seconds(max(0.0, since_boot - start_ticks / os.sysconf("SC_CLK_TCK")))


def pids_since(pid: int, start_ticks: int) -> range | None:
    """The pids of all that a process may have started; None = they may have started anew since its start."""
    highest = last_pid()
    if highest is None or highest < pid or age_of(start_ticks) >= pid_max() / _PIDS_PER_SECOND:
        return None
    return range(pid, highest + 1)


def ticks_of(pid: int) -> int:
    """The CPU time a process has used, and its reads from swap and disk: in clock ticks and pages, added up."""
    try:
        line = _read(f"{pid}/stat")
    except OSError:
        return 0
    fields = line[line.rindex(b")") + 2 :].split()
    major_faults, user, system = fields[9], fields[11], fields[12]
    return int(major_faults) + int(user) + int(system)


def pages_of(pid: int) -> tuple[int, int] | None:
    """What a process has in memory, with and without what it may share; None = there is none."""
    try:
        _, resident, shared, *_ = _read(f"{pid}/statm").split()
    except (OSError, ValueError):
        return None
    return int(resident), int(resident) - int(shared)


def cpu_time_of(pid: int) -> Seconds:
    """The CPU time a process has used, all its threads together."""
    try:
        line = _read(f"{pid}/stat")
    except OSError:
        return Seconds(0.0)
    user, system = line[line.rindex(b")") + 2 :].split()[11:13]
    return Seconds((int(user) + int(system)) / os.sysconf("SC_CLK_TCK"))


def uses_gpu(pid: int) -> bool:
    """Whether a process holds a GPU's device open. False too where we may not look."""
    return any(target.startswith(_GPUS) for target in _open_files(pid))


def io_bytes(pid: int) -> int:
    """What a process has read and written; 0 where we may not look. Sockets do not count, log lines do."""
    try:
        lines = _read(f"{pid}/io").splitlines()
    except OSError:
        return 0
    said = dict(line.split(b": ", 1) for line in lines)
    return sum(int(said.get(key, 0)) for key in (b"rchar", b"wchar", b"read_bytes"))


@cache
def boot_id() -> str:
    """Changes with each boot, so that a pid noted before it proves nothing."""
    return _read("sys/kernel/random/boot_id").decode().strip()


def has_in_environ(pid: int, entry: str) -> bool:
    """Whether the process was started with `KEY=value`. False too where we may not look."""
    return entry.encode() in _environ(pid)


def value_in_environ(pid: int, name: str) -> str | None:
    """What a variable was when the process was started; None where there is none, or we may not look."""
    start = f"{name}=".encode()
    found = next((entry for entry in _environ(pid) if entry.startswith(start)), None)
    return None if found is None else found[len(start) :].decode(errors="surrogateescape")


def _environ(pid: int) -> list[bytes]:
    try:
        return _read(f"{pid}/environ").split(b"\0")
    except OSError as error:
        if is_used_up(error):
            raise
        return []


def socket_inodes(pid: int) -> frozenset[str]:
    """The sockets a process has open, as `/proc/net/tcp` numbers them."""
    return frozenset(open_sockets(pid))


def open_sockets(pid: int) -> Iterator[str]:
    """The same one by one, the oldest first as a rule: who looks for one that listens need not see them all."""
    return (file[8:-1] for file in _open_files(pid) if file.startswith("socket:["))


def _open_files(pid: int) -> Iterator[str]:
    folder = f"{_PROC}/{pid}/fd/"
    try:
        links = os.listdir(folder)  # noqa: PTH208 - a name is all that is needed
    except OSError as error:
        if is_used_up(error):
            raise
        return
    for link in links:
        with contextlib.suppress(OSError):  # it was closed meanwhile
            yield os.readlink(folder + link)  # noqa: PTH115 - `socket:[123]` is not a path
