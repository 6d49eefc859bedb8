"""How much a child has done so far, and whether somebody froze it: what tells a busy child from one that hangs."""

from dataclasses import dataclass

from qmsup.core.lifecycle.progress import Effort
from qmsup.processes import procfs, stop
from qmsup.processes.child import Child
from qmsup.processes.procfs import io_bytes, ticks_of
from qmsup.units import Seconds

_STOPPED = "T"
_TRACED = "t"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """All of a child at one moment.

    Attributes:
        done: CPU ticks and bytes read and written, in one sum; it changes with whatever any process of it does.
        is_stopped: a signal (SIGSTOP) keeps one of its processes from running.
        is_traced: a debugger holds one of them, or nobody can look.
    """

    done: int
    is_stopped: bool
    is_traced: bool


def look_at(child: Child) -> Seen:
    """Look at every process of the child; some milliseconds, so not for every day."""
    try:
        found = stop.members_of(child)
    except OSError:  # no descriptor is left to look with, so nothing is known against it
        return Seen(done=0, is_stopped=False, is_traced=True)
    states = {stat.state for stat in found}
    return Seen(
        done=sum(ticks_of(stat.pid) + io_bytes(stat.pid) for stat in found),
        is_stopped=_STOPPED in states,
        is_traced=_TRACED in states,
    )


def effort_of(child: Child) -> Effort:
    """What every process of the child has used so far; some milliseconds."""
    try:
        found = stop.members_of(child)
        uses_gpu = any(procfs.uses_gpu(stat.pid) for stat in found)
    except OSError:
        return Effort(cpu=Seconds(0.0), moved=0, uses_gpu=False, is_held=True)
    return Effort(
        cpu=Seconds(sum(procfs.cpu_time_of(stat.pid) for stat in found)),
        moved=sum(io_bytes(stat.pid) for stat in found),
        uses_gpu=uses_gpu,
        is_held=any(stat.state in (_STOPPED, _TRACED) for stat in found),
    )
