"""Ports for one process's tests alone, though test processes run side by side, of this run and of others."""

import fcntl
import os
import tempfile
from pathlib import Path

_FIRST = 21_000  # below the ports that the kernel gives to outgoing connections
_BLOCKS = 80
BLOCK = 20
"""More ports than any one test takes."""

_held: list[int] = []


def claim_ports() -> int:
    """The first of a block of ports that no other test process has while this one lives.

    A port is picked first and bound later, by a child. Whoever picks in the same range meanwhile picks the same one.
    """
    folder = Path(tempfile.gettempdir()) / f"qmsup-test-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    for block in range(_BLOCKS):
        lock = os.open(folder / str(block), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        _held.append(lock)  # as long as this process lives
        return _FIRST + block * BLOCK
    message = f"all {_BLOCKS} blocks of ports are claimed by test processes: see {folder}"
    raise AssertionError(message)
