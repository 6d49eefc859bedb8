"""One process of `qmsup serve`: a scheduler or a listener, started again when it dies."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from qmsup.log import Log
from qmsup.units import Seconds

_PR_SET_PDEATHSIG = 1
_SHORTEST_PAUSE = 0.2
_LONGEST_PAUSE = 5.0
_STEADY_AFTER = 10.0
"""Seconds of life after which a death is news, not a loop: the pause starts over."""

_log = Log("serve")
_libc = ctypes.CDLL(None, use_errno=True)


def _end_with_parent(parent: int) -> None:
    # Runs between fork and exec. `serve` has one thread, so the signal comes when the process dies, not a thread.
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(1)  # it died before it was watched
    # Until it listens to it itself, a HUP must not end it: it reads its configuration just then anyway.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(
        signal.SIG_SETMASK, ()
    )  # `serve` blocks the signals it waits for; a child must not


class Member:
    """A supervised process. Times are of the monotonic clock and come from the caller."""

    def __init__(self, name: str, arguments: Sequence[str]) -> None:
        self.name = name
        self._argv = [sys.executable, "-m", "qmsup", *arguments]
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._pause = 0.0
        self.starts = 0
        """How often it was started."""
        self.start_at: Seconds | None = Seconds(0.0)
        """When it is to be started; None while it runs or once it shall not run."""

    @property
    def pid(self) -> int | None:
        """The pid while it runs."""
        return self._process.pid if self._process is not None else None

    def start_if_due(self, now: Seconds) -> None:
        """Start it when its time has come."""
        if self.start_at is None or now < self.start_at:
            return
        # A group of its own: Ctrl-C reaches `serve` alone, which then stops the others in order.
        self._process = subprocess.Popen(
            self._argv,
            stdin=subprocess.DEVNULL,
            process_group=0,
            preexec_fn=partial(_end_with_parent, os.getpid()),  # noqa: PLW1509 - `serve` has one thread
        )
        self._started = now
        self.starts += 1
        self.start_at = None
        _log.info("member.started", name=self.name, pid=self._process.pid)

    def reap(self, now: Seconds) -> int | None:
        """The exit code if it ended since the last call; plans the next start."""
        if self._process is None or (code := self._process.poll()) is None:
            return None
        _log.warning("member.died", name=self.name, pid=self._process.pid, **_how(code))
        self._process = None
        steady = now - self._started > _STEADY_AFTER
        self._pause = (
            _SHORTEST_PAUSE if steady or not self._pause else min(self._pause * 2, _LONGEST_PAUSE)
        )
        self.start_at = Seconds(now + self._pause)
        return code

    def has_ended(self) -> bool:
        """Whether it does not run; collects its exit."""
        return self._process is None or self._process.poll() is not None

    def pass_on(self, number: signal.Signals) -> None:
        """Signal it if it runs; it goes on."""
        if self._process is not None:
            self._process.send_signal(number)

    def signal(self, number: signal.Signals) -> None:
        """Signal it if it runs, and never start it again."""
        self.start_at = None
        if self._process is not None:
            self._process.send_signal(number)

    def kill_group(self) -> None:
        """End it and what it forked, at once."""
        self.start_at = None
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def _how(code: int) -> dict[str, object]:
    if code >= 0:
        return {"exit_code": code}
    return {"signal": signal.Signals(-code).name}


def scheduler_member(config: Path) -> Member:
    """The scheduler process of a configuration file."""
    return Member("scheduler", ["scheduler", "-c", str(config)])


def listener_member(name: str, config: Path) -> Member:
    """The gunicorn of one listener."""
    return Member(f"listener {name}", ["listener", name, "-c", str(config)])
