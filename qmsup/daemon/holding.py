"""What makes a process the only scheduler of its folders, for as long as it lives, whatever is removed from them."""

from collections.abc import Callable
from pathlib import Path

from qmsup import places
from qmsup.daemon.epoch import write_epoch
from qmsup.daemon.in_the_way import in_the_way
from qmsup.daemon.lock import SchedulerLock
from qmsup.errors import ConfigError
from qmsup.ids import Epoch
from qmsup.log import Log

_log = Log("folders")


class Hold:
    """The locks, and a look now and then whether they are where another scheduler would find them."""

    def __init__(self, state: SchedulerLock, sockets: SchedulerLock, epoch: Epoch) -> None:
        """Take over locks that are held.

        Args:
            state: of the state folder.
            sockets: of the runtime folder.
            epoch: of this life, to be counted on from.
        """
        self._locks = {"state": state, "sockets": sockets}
        self._epoch = epoch
        self._told: set[str] = set()
        """Which trouble is known, as it is looked for again and again."""

    @property
    def has_sockets(self) -> bool:
        """Whether those in the runtime folder are this process's."""
        return self._locks["sockets"].is_in_place()

    def release(self) -> None:
        """Let go."""
        for lock in self._locks.values():
            lock.release()

    def look(self, *, are_named: Callable[[], bool], name_again: Callable[[], None]) -> None:
        """Make good what somebody removed.

        Args:
            are_named: whether each socket of ours is in the runtime folder.
            name_again: gives them their names again.
        """
        if self._is_kept("state", places.lock_file(), self._count_on):
            self._told.discard("state")
        if self._is_kept("sockets", places.sockets_lock_file(), lambda: None):
            self._told.discard("sockets")
            if not are_named():
                name_again()

    def _is_kept(self, which: str, path: Path, mend: Callable[[], None]) -> bool:
        """Whether the lock is where it belongs, or is there again."""
        lock = self._locks[which]
        if lock.is_in_place():
            return True
        try:
            self._locks[which] = _taken_again(path)
            mend()
        except (ConfigError, OSError) as error:
            if which not in self._told:
                self._told.add(which)
                _log.error("lock.lost", file=str(path), because=str(error), hint=_HINTS[which])
            return False
        lock.release()
        _log.error("lock.taken_again", file=str(path), because="it was removed", hint=_HINTS[which])
        return True

    def _count_on(self) -> None:
        write_epoch(places.state_dir(), self._epoch)


def _taken_again(path: Path) -> SchedulerLock:
    places.make_private(path.parent)
    if problems := tuple(
        map(str, in_the_way())
    ):  # as at the start: the folder may be another's by now
        raise ConfigError(problems)
    return SchedulerLock(path)


_HINTS = {
    "state": (
        "what the state folder held is lost: `qmsup unload` before the scheduler is restarted,"
        " as the next one will not know the models that run"
    ),
    "sockets": "keep cleaners of temporary files, and the end of logins, from the runtime folder",
}
