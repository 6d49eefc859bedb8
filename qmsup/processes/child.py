"""One running child: what its owner needs to watch, name and end it."""

import os
import select
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from qmsup.processes.records import Record

NONCE_VARIABLE = "QMSUP_CHILD"
"""In the environment of a child and of all it starts: what proves that a process came from us."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a process ended. Neither is known when somebody else waited for it."""

    code: int | None = None
    signal: int | None = None

    @property
    def words(self) -> str:
        """Such as `exited with code 1`, `was killed by SIGSEGV`."""
        if self.signal is not None:
            return f"was killed by {_signal_name(self.signal)}"
        if self.code is not None:
            return f"exited with code {self.code}"
        return "ended (its exit code is not known)"


@dataclass(slots=True, kw_only=True)
class Child:
    """A program that runs: leader of a session of its own.

    Attributes:
        record: its names: model, incarnation, pid, start, nonce, port.
        pidfd: readable once the leader has ended.
        log_start: where in its log this start begins, in bytes.
        process: what spawned it; None = a former scheduler did, so it is not ours to wait for.
    """

    record: Record
    pidfd: int
    log: Path
    log_start: int
    process: subprocess.Popen[bytes] | None

    @property
    def pid(self) -> int:
        """Of the leader; the number of its session and process group too."""
        return self.record.pid

    def exit(self) -> Exit | None:
        """How the leader ended, without reaping it: until then its pid and session cannot be given away.

        Of one that a former scheduler spawned only that can be seen: its new parent reaps it in its own time.
        """
        if self.process is None:
            return Exit() if self._has_ended() else None
        try:
            status = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return Exit()
        if status is None:
            return None
        if status.si_code == os.CLD_EXITED:
            return Exit(code=status.si_status)
        return Exit(signal=status.si_status)

    def reap(self) -> None:
        """Take the ended leader out of the process table, and give back its descriptor."""
        if self.process is not None:
            self.process.wait()
        self._close()

    def let_go(self) -> None:
        """Leave the child running and forget it. A later scheduler finds it by its record."""
        if self.process is not None:
            self.process.returncode = 0  # subprocess is not to wait for it, nor to warn of it
        self._close()

    def _has_ended(self) -> bool:
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        return bool(poll.poll(0))

    def _close(self) -> None:
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
