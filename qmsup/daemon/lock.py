"""One scheduler per state folder, and one per folder of sockets: advisory locks that name their holder.

A second one with the same sockets would take them from the first, and remove them at its end.
"""

import fcntl
import os
import time
from pathlib import Path

from qmsup import places
from qmsup.errors import ConfigError


class LockedError(ConfigError):
    """Another scheduler works on this folder."""


class SchedulerLock:
    """Held from construction until the process ends; the kernel lets go of it, whatever the end."""

    def __init__(self, path: Path) -> None:
        """Take the lock.

        Raises:
            LockedError: another process holds it; the text names its pid, and since when.
            OSError: the file cannot be made.
        """
        self._path = path
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(path, flags, 0o600)
        try:
            _take(self._fd, path, fcntl.LOCK_EX)
        except LockedError:
            os.close(self._fd)
            raise
        own = f"{os.getpid()}\n".encode()
        os.pwrite(self._fd, own, 0)  # first: what is cut off a full disk's file may be gone at once
        os.ftruncate(self._fd, len(own))

    def is_in_place(self) -> bool:
        """Whether another process would find it: nobody has removed its file, or put another one there."""
        try:
            return os.path.samestat(self._path.stat(follow_symlinks=False), os.fstat(self._fd))
        except OSError:
            return False

    def release(self) -> None:
        """Let go early (tests; a process just ends)."""
        os.close(self._fd)


def see_that_nobody_holds() -> None:
    """See whether another scheduler uses one of our folders, before anything is started beside it.

    Raises:
        LockedError: one does.
    """
    for path in (places.lock_file(), places.sockets_lock_file()):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue  # there is none, or something else in its place, which is told of elsewhere
        try:
            _take(fd, path, fcntl.LOCK_SH)  # for a moment: others may look at the same time
        finally:
            os.close(fd)


def _take(fd: int, path: Path, how: int) -> None:
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(fd, 32, 0).decode(errors="replace").strip() or "unknown"
        since = time.strftime("%F %T", time.localtime(os.fstat(fd).st_mtime))
        message = (
            f"another scheduler (pid {holder}) uses {path.parent} since {since}: stop it, "
            "or give this one another QMSUP_STATE_DIR and QMSUP_RUNTIME_DIR"
        )
        raise LockedError((message,)) from None
