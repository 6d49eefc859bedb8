"""How a child is ended: a TERM that it may refuse, then a KILL for everything that came from it.

What came from it is found by three marks, as each can be lost on the way: its session, the nonce in the environment,
and descent from something that has one of the two. `nohup`, `setsid` and double forks lose at most two of them.
"""

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass

from qmsup.processes import records
from qmsup.processes.child import NONCE_VARIABLE, Child
from qmsup.processes.procfs import Stat, all_stats, has_in_environ, last_pid, pids_since, stat_of
from qmsup.units import Seconds

_LOOK_AGAIN = 0.01
_KILL_PATIENCE = 10.0
_STALE_AFTER = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AloneAt:
    """Nothing but the leader came from a child then. It spares a second look at everything soon after.

    Attributes:
        clock: of the monotonic clock, in seconds.
        last_pid: the last pid given away before the look. What is younger has a higher one, until they start anew.
    """

    clock: float
    last_pid: int

    def pids_since(self) -> range | None:
        """The pids of what is new since then; None when that cannot be told any more."""
        is_fresh = time.monotonic() - self.clock < _STALE_AFTER
        last = last_pid()
        if not is_fresh or last is None or last < self.last_pid:
            return None
        return range(self.last_pid + 1, last + 1)


def terminate(child: Child) -> AloneAt | None:
    """Ask all of a child to end. An unreaped leader keeps its group's number from being reused.

    Nothing is asked twice, as a second TERM may mean: at once. Looking for what is not in the leader's group takes a
    while, in which the leader ends; what it shows is returned as by `look_around`.
    """
    _signal_group(child, signal.SIGTERM)
    last, clock, found = last_pid(), time.monotonic(), _seen(child)
    if found is None:
        return None
    for stat in found:
        if stat.group != child.pid:
            send(stat, signal.SIGTERM)
    return _alone(child, found, last, clock)


def members(*, session: int, nonce: str, since: int, among: range | None = None) -> list[Stat]:
    """The living processes of a child.

    Args:
        session: the leader's pid.
        nonce: the child's.
        since: the leader's start in ticks; nothing older can come from it.
        among: look at these pids only.
    """
    mark = f"{NONCE_VARIABLE}={nonce}"
    later = [
        stat for stat in all_stats(among) if stat.start_ticks >= since and stat.pid != os.getpid()
    ]
    ours = {stat.pid for stat in later if stat.session == session or has_in_environ(stat.pid, mark)}
    ours.add(session)
    for stat in sorted(later, key=lambda stat: stat.start_ticks):
        if stat.parent in ours:
            ours.add(stat.pid)
    return [stat for stat in later if stat.pid in ours and stat.is_alive]


def look_around(child: Child) -> AloneAt | None:
    """Whether the leader is all there is of a child: best asked while it ends anyway, as it takes a while."""
    last, clock, found = last_pid(), time.monotonic(), _seen(child)
    return None if found is None else _alone(child, found, last, clock)


def _alone(child: Child, found: list[Stat], last: int | None, clock: float) -> AloneAt | None:
    is_alone = all(stat.pid == child.pid for stat in found)
    return AloneAt(clock=clock, last_pid=last) if is_alone and last is not None else None


def pids_of(child: Child) -> Iterator[int]:
    """The leader first; all of /proc is read only for somebody who wants more."""
    yield child.pid
    yield from (stat.pid for stat in _members(child) if stat.pid != child.pid)


def members_of(child: Child) -> list[Stat]:
    """The living processes of a child, its leader among them."""
    return _members(child)


def is_anything_left(child: Child, alone: AloneAt | None = None) -> bool:
    """Whether anything that came from a child still lives; `alone` is what an earlier look saw.

    True as well where nobody can look: what is not known to be gone is to be looked for again.
    """
    found = _seen(child, alone.pids_since() if alone is not None else None)
    return found is None or bool(found)


def kill_all(child: Child, alone: AloneAt | None = None) -> bool:
    """Send KILL to everything that came from the child; whether anything of it was, or may be, still alive.

    Args:
        child: whose.
        alone: what an earlier look saw; so only what may be new is looked at.
    """
    _signal_group(child, signal.SIGKILL)  # most of it, and without a descriptor
    alive = _seen(child, alone.pids_since() if alone is not None else None)
    if alive is None:
        return True
    for stat in alive:
        send(stat, signal.SIGKILL)
    return bool(alive)


def _signal_group(child: Child, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it runs as another user now
        os.killpg(child.pid, number)


def _seen(child: Child, among: range | None = None) -> list[Stat] | None:
    """What lives of a child; None = no descriptor is left to look with."""
    try:
        return _members(child, among)
    except OSError:
        return None


def _members(child: Child, among: range | None = None) -> list[Stat]:
    record = child.record
    if among is None:
        among = pids_since(record.pid, record.start_ticks)
    return members(session=record.pid, nonce=record.nonce, since=record.start_ticks, among=among)


def send(stat: Stat, number: signal.Signals) -> None:
    """Signal exactly this process, if that is possible: never another that got its pid since."""
    try:
        descriptor = os.pidfd_open(stat.pid)
    except OSError:  # it is gone, or no descriptor is left: who sends looks again
        return
    try:
        with contextlib.suppress(OSError):  # it is gone meanwhile, or another user's
            now = stat_of(stat.pid)
            if now is not None and now.start_ticks == stat.start_ticks:
                signal.pidfd_send_signal(descriptor, number)
    finally:
        os.close(descriptor)


def bury(child: Child) -> None:
    """Reap an ended leader and remove its record."""
    child.reap()
    records.erase(child.record)


def end(child: Child, *, grace: Seconds) -> bool:
    """Wait for a child that was asked to end, KILL, reap: for the end of its owner. Whether nothing is left."""
    _wait_for_exit(child, grace)
    until = time.monotonic() + _KILL_PATIENCE
    while kill_all(child):
        if time.monotonic() > until:
            return False
        _wait_for_exit(child, Seconds(_LOOK_AGAIN))
        if child.exit() is not None:
            time.sleep(
                _LOOK_AGAIN
            )  # its grandchildren are init's to reap, so nothing tells of their end
    bury(child)
    return True


def _wait_for_exit(child: Child, patience: Seconds) -> None:
    poll = select.poll()
    poll.register(child.pidfd, select.POLLIN)
    poll.poll(patience * 1000.0)
