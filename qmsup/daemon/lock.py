"""One scheduler per state folder, and one per folder of sockets: advisory locks that name their holder.

A second one with the same sockets would take them from the first, and remove them at its end.
"""

import fcntl
import os
from pathlib import Path

from qmsup.errors import ConfigError


class LockedError(ConfigError):
    """Another scheduler works on this folder."""


class SchedulerLock:
    """Held from construction until the process ends; the kernel lets go of it, whatever the end."""

    def __init__(self, path: Path) -> None:
        """Take the lock.

        Raises:
            LockedError: another process holds it; the text names its pid.
            OSError: the file cannot be made.
        """
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._fd, 32).decode(errors="replace").strip() or "unknown"
            os.close(self._fd)
            message = (
                f"another scheduler (pid {holder}) uses {path.parent}: stop it, "
                "or give this one another QMSUP_STATE_DIR and QMSUP_RUNTIME_DIR"
            )
            raise LockedError((message,)) from None
        own = f"{os.getpid()}\n".encode()
        os.pwrite(self._fd, own, 0)  # first: what is cut off a full disk's file may be gone at once
        os.ftruncate(self._fd, len(own))

    def release(self) -> None:
        """Let go early (tests; a process just ends)."""
        os.close(self._fd)
