"""Runs a program for a moment to hear what it says of itself."""

import contextlib
import os
import secrets
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qmsup.processes import procfs, stop
from qmsup.processes.child import NONCE_VARIABLE
from qmsup.units import Seconds

_WITHIN = Seconds(10.0)
"""A build with CUDA opens the driver first, which may take seconds after a boot."""
_MOST_SAID = 64 * 1024
_SHELLS_SIGNALS = 128
_LOOK_AGAIN = Seconds(0.05)
_GONE_WITHIN = Seconds(2.0)
"""After it was killed; the kernel lets go of one that a driver holds when that answers."""


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
        return self.ended_by is signal.SIGILL

    @property
    def ended_by(self) -> signal.Signals | None:
        """By what signal it ended, itself or below a wrapper; None = by none."""
        code = self.code or 0
        try:
            return signal.Signals(-code if code < 0 else code - _SHELLS_SIGNALS)
        except ValueError:
            return None


def hear(argv: Sequence[str], env: Mapping[str, str]) -> Heard:
    """Run it in a session of its own, with nothing on its input, and end all of it when it has ended, or after a while.

    What it started may have its output open for as long as it likes, one that says things without end would fill the
    memory, and one that a driver holds does not even end when it is killed: none of them is waited for.

    Raises:
        OSError: it cannot be run.
    """
    nonce = secrets.token_hex(8)
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**env, NONCE_VARIABLE: nonce},
        start_new_session=True,
    )
    begun = procfs.stat_of(process.pid)
    try:
        said = _said(process)
        code = process.poll()
    finally:
        _end(process, nonce, 0 if begun is None else begun.start_ticks)
    return Heard(code=code, said=said[:_MOST_SAID].decode(errors="replace"))


def _said(process: subprocess.Popen[bytes]) -> bytes:
    """What it says until it ends, until it has said too much, or for as long as is waited."""
    assert process.stdout is not None, "it was asked for"
    output, until, said = process.stdout.fileno(), time.monotonic() + _WITHIN, b""
    os.set_blocking(output, False)
    while (left := until - time.monotonic()) > 0 and len(said) <= _MOST_SAID:
        has_ended = process.poll() is not None  # asked first: what it said last can be read by then
        try:
            piece = os.read(output, _MOST_SAID)
        except BlockingIOError:
            if has_ended:
                break
            select.select([output], [], [], min(left, _LOOK_AGAIN))
            continue
        if not piece:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(left)
            break
        said += piece
    return said


def _end(process: subprocess.Popen[bytes], nonce: str, since: int) -> None:
    """All of its group, whose number is the group's while one of it lives, and whatever has left that."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for stat in stop.members(session=process.pid, nonce=nonce, since=since):
        with contextlib.suppress(PermissionError):
            stop.send(stat, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GONE_WITHIN)
    assert process.stdout is not None, "it was asked for"
    process.stdout.close()
