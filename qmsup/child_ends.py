"""What a model's program died of, left by who looks after it for those to whom it owed an answer.

A listener's worker sees that a connection ended, and no more; how the program exited is seen by the scheduler's process
alone, a moment later. It is left in a file beside the program's log, the last end of each model: so no answer waits for
a message, and there is no message for those who wait for none.
"""

import contextlib
import os
from pathlib import Path

from qmsup.ids import Incarnation

_MOST = 64 * 1024
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC
"""Whatever is in the place of a file, nobody waits for it."""


def end_file(log: Path) -> Path:
    """Where it is left, for the program with this log."""
    return log.with_suffix(".end")


def leave(log: Path, incarnation: Incarnation, words: str) -> None:
    """Leave word of how this start of a model ended; where it cannot be written nobody is told."""
    fresh = log.with_suffix(".end.new")
    with contextlib.suppress(OSError):
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _FLAGS, 0o600)
        try:
            os.write(file, f"{incarnation}\n{words}".encode(errors="replace"))
        finally:
            os.close(file)
        fresh.replace(end_file(log))


def found(log: Path, incarnation: Incarnation) -> str:
    """How this start of a model ended; "" where nothing is known of that, or not yet."""
    try:
        file = os.open(end_file(log), os.O_RDONLY | _FLAGS)
        try:
            text = os.read(file, _MOST).decode(errors="replace")
        finally:
            os.close(file)
    except OSError:
        return ""
    number, _, words = text.partition("\n")
    return words if number == str(incarnation) else ""
