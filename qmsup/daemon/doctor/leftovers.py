"""Children that a scheduler left behind: they hold memory and ports that the next one will want."""

from collections.abc import Iterator, Sequence

from qmsup.daemon.doctor.box import Box
from qmsup.daemon.doctor.finding import Check, Finding
from qmsup.processes import leftovers
from qmsup.processes.records import Record

_check = Check("children")


def look(_box: Box) -> Iterator[Finding]:
    """One finding for each that was left, or one that says that there is none."""
    found = leftovers.look()
    for record in found.alive:
        yield _check.warn(
            f"pid {record.pid}",
            f"{record.model} is still there, though its scheduler (pid {record.owner}) is gone",
            "the next `qmsup serve` goes on with it, or ends it if it is not ready or not wanted any more;"
            f" to have its memory back now: kill {record.pid}",
        )
    for record in found.unproved:
        yield _check.warn(
            f"pid {record.pid}",
            f"it looks like a child that was left ({record.model}), but nothing proves that it is that",
            f"look at it (ps -fp {record.pid}); end it by hand if it is a model's server, qmsup never will",
        )
    if found.owned:
        yield _check.ok(_counted(found.owned), "belong to the scheduler that runs")
    if not (found.alive or found.unproved or found.owned):
        yield _check.ok("none", "nothing was left behind")


def _counted(records: Sequence[Record]) -> str:
    return ", ".join(f"pid {record.pid}" for record in records)
