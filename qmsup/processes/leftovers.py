"""Ends the children of a scheduler that died without doing so.

A pid in a file proves nothing: pids are given away again. A leader is ours when the boot, its start and the nonce in
its environment all fit, and what it started is ours by the nonce. What cannot be proved is reported, never signalled.
A child that has no record, as the disk was full, tells of itself by its mark.
"""

import os
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from qmsup.log import Log
from qmsup.processes import marks, procfs, records, stop
from qmsup.processes.child import NONCE_VARIABLE
from qmsup.processes.procfs import Stat
from qmsup.processes.records import Record
from qmsup.units import Seconds

_log = Log("leftovers")
_NO_SESSION = -1
_KILL_PATIENCE = 10.0
_LOOK_AGAIN = 0.05


@dataclass(slots=True, kw_only=True)
class Leftovers:
    """What was found.

    Attributes:
        stopped: proved ours, and gone now.
        unproved: something runs under the pid that a record names, and nothing proves that it is ours.
        owned: children of another scheduler, which lives.
        stuck: ours, and KILL did not end them.
        kept: proved ours, and gone on with.
        alive: proved ours, by a look that ends nothing.
    """

    stopped: list[Record] = field(default_factory=list)
    unproved: list[Record] = field(default_factory=list)
    owned: list[Record] = field(default_factory=list)
    stuck: list[Record] = field(default_factory=list)
    kept: list[Record] = field(default_factory=list)
    alive: list[Record] = field(default_factory=list)


def look() -> Leftovers:
    """What a scheduler that starts now would find. Nothing is ended, and no record is removed."""
    found = Leftovers()
    boot = procfs.boot_id()
    for record in _with_unrecorded(list(records.read_all(removes_unreadable=False)), found):
        if record.boot != boot:
            continue
        if record.owner_is_alive:
            found.owned.append(record)
        elif _is_doubtful(record):
            found.unproved.append(record)
        elif _members(record):
            found.alive.append(record)
    return found


def stop_leftovers(
    *, keep: Callable[[Record], bool] = lambda _record: False, grace: Seconds = Seconds(3.0)
) -> Leftovers:
    """End what earlier schedulers of this state folder left running. Waits; for the start of a scheduler.

    Args:
        keep: called for each whose leader lives and is proved ours, the youngest first; True = leave it alone, it is
            somebody's now.
        grace: between TERM and KILL. A llama-server with an open stream never ends by TERM.
    """
    marks.make_key()
    found = Leftovers()
    boot = procfs.boot_id()
    ours: dict[Record, list[Stat]] = {}
    there = _with_unrecorded(list(records.read_all()), found)
    for record in sorted(there, key=lambda record: -record.incarnation):
        if record.boot != boot:
            records.erase(record)
        elif record.owner_is_alive:
            found.owned.append(record)
        elif _is_doubtful(record):
            found.unproved.append(record)
        elif _leader(record) is not None and keep(record):
            found.kept.append(record)
        elif alive := _members(record):
            ours[record] = alive
        else:
            records.erase(record)
    _end(ours, grace, found)
    _tell(found)
    return found


def _with_unrecorded(recorded: list[Record], found: Leftovers) -> list[Record]:
    """All that is known, children without a record too; of those what is not proved goes to `found` at once."""
    for each in marks.unrecorded({record.nonce for record in recorded}):
        if each.is_proved:
            recorded.append(each.record)
        elif each.record.owner_is_alive:
            found.owned.append(each.record)
        else:
            found.unproved.append(replace(each.record, pid=each.claimant))
    return recorded


def _end(ours: dict[Record, list[Stat]], grace: Seconds, found: Leftovers) -> None:
    processes = [stat for alive in ours.values() for stat in alive]
    for stat in processes:
        stop.send(stat, signal.SIGTERM)
    _wait_for(processes, grace)
    for record in ours:
        if _kill(record):
            records.erase(record)
            found.stopped.append(record)
        else:
            found.stuck.append(record)


def _is_doubtful(record: Record) -> bool:
    leader = _leader(record)
    return leader is not None and not _is_marked(record)


def _leader(record: Record) -> Stat | None:
    stat = procfs.stat_of(record.pid) if record.pid else None
    is_same = stat is not None and stat.is_alive and stat.start_ticks == record.start_ticks
    return stat if is_same else None


def _is_marked(record: Record) -> bool:
    return procfs.has_in_environ(record.pid, f"{NONCE_VARIABLE}={record.nonce}")


def _members(record: Record) -> list[Stat]:
    # The session's number counts only while its leader proves it: it may be another's by now.
    session = record.pid if _leader(record) is not None else _NO_SESSION
    return stop.members(session=session, nonce=record.nonce, since=record.start_ticks)


def _kill(record: Record) -> bool:
    until = time.monotonic() + _KILL_PATIENCE
    while alive := _members(record):
        if time.monotonic() > until:
            return False
        for stat in alive:
            stop.send(stat, signal.SIGKILL)
        _wait_for(alive, Seconds(_LOOK_AGAIN))
    return True


def _wait_for(processes: list[Stat], patience: Seconds) -> None:
    until = time.monotonic() + patience
    for stat in processes:
        try:
            descriptor = os.pidfd_open(stat.pid)
        except ProcessLookupError:
            continue
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(max(0.0, until - time.monotonic()) * 1000.0)
        os.close(descriptor)


def _tell(found: Leftovers) -> None:
    for record in found.stopped:
        _log.info("leftover.stopped", model=record.model, pid=record.pid)
    for record in found.kept:
        _log.info("leftover.kept", model=record.model, pid=record.pid)
    for record in found.unproved:
        _log.warning(
            "leftover.unproved",
            model=record.model,
            pid=record.pid,
            hint="it is not provably ours and was left alone; end it by hand if it holds memory",
        )
    for record in found.owned:
        _log.warning("leftover.owned", model=record.model, pid=record.pid, scheduler=record.owner)
    for record in found.stuck:
        _log.error("leftover.stuck", model=record.model, pid=record.pid)
