"""Runs a program for a moment to hear what it says of itself."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qmsup.units import Seconds

_WITHIN = Seconds(10.0)
"""A build with CUDA opens the driver first, which may take seconds after a boot."""
_MOST_SAID = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """How it ended.

    Attributes:
        code: as subprocess tells it: negative = by that signal; None = it had to be ended.
        said: on both outputs, the beginning.
    """

    code: int | None
    said: str

    @property
    def died_of_its_instructions(self) -> bool:
        """It was built for another CPU."""
        return self.code in {-signal.SIGILL, 128 + signal.SIGILL}  # itself, or below a wrapper


def hear(argv: Sequence[str], env: Mapping[str, str]) -> Heard:
    """Run it in a session of its own, with nothing on its input, and end all of it after a while.

    Raises:
        OSError: it cannot be run.
    """
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(env),
        start_new_session=True,
    )
    code: int | None
    try:
        said, _ = process.communicate(timeout=_WITHIN)
        code = process.returncode
    except subprocess.TimeoutExpired:
        _kill(process)
        said, _ = process.communicate()
        code = None
    finally:
        _kill(process)
    return Heard(code=code, said=said[:_MOST_SAID].decode(errors="replace"))


def _kill(process: subprocess.Popen[bytes]) -> None:
    """All of its group; the number is still the group's while one of it lives."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
