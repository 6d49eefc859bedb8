"""The programs a run starts, and that none of them outlives it."""

import contextlib
import ctypes
import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from scripts.benchmark import accounting

_PR_SET_CHILD_SUBREAPER = 36
_GRACE_S = 8.0


class BenchError(Exception):
    """The benchmark cannot go on; the text says what happened and where to look."""


class Programs:
    """Starts programs with their output in a file of `folder`, and stops all of them at the end.

    The benchmark makes itself the subreaper: what its programs leave behind becomes its own child, is
    stopped too, and is named in `left_behind`.
    """

    def __init__(self, folder: Path, *, first_port: int) -> None:
        """`folder` takes the logs; ports are tried from `first_port` upwards."""
        self.folder = folder
        self.left_behind: list[str] = []
        self._running: list[subprocess.Popen[bytes]] = []
        self._next_port = first_port
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def port(self) -> int:
        """A port nobody listens on, below the range from which the kernel numbers outgoing connections."""
        while True:
            self._next_port += 1
            with socket.socket() as probe, contextlib.suppress(OSError):
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", self._next_port))
                return self._next_port

    def start(
        self,
        name: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        stdin: int | IO[bytes] = subprocess.DEVNULL,
        stdout: int | IO[bytes] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Starts `argv` in a session of its own; its output goes to `name.log` unless a pipe is asked for."""
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                argv,
                env={**os.environ, **(env or {})},
                stdin=stdin,
                stdout=log if stdout is None else stdout,
                stderr=log,
                start_new_session=True,
            )
        self._running.append(process)
        return process

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """TERM, some seconds of grace, then KILL of it and of all below it."""
        below = accounting.descendants(process.pid)
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                below = accounting.descendants(process.pid) or below
                process.kill()
                process.wait()
                _kill(below)
        if process in self._running:
            self._running.remove(process)

    def stop_all(self) -> None:
        """Stops what still runs, last started first, then whatever any of it left behind."""
        for process in reversed(self._running[:]):
            self.stop(process)
        deadline = time.monotonic() + 2.0
        while (left := accounting.descendants(os.getpid())) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.left_behind = [f"pid {pid}: {accounting.command(pid)}" for pid in left]
        _kill(left)

    def tail(self, name: str, lines: int = 8) -> str:
        """The last lines a program wrote."""
        try:
            text = (self.folder / f"{name}.log").read_text(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def await_http(self, name: str, process: subprocess.Popen[bytes], port: int) -> None:
        """Waits until `GET /health` answers 200.

        Raises:
            BenchError: The program ended, or 30 seconds passed; with its last lines.
        """
        deadline = time.monotonic() + 30.0
        while time.monotonic() < deadline and process.poll() is None:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if ask(port, "GET", "/health")[0] == 200:
                    return
            time.sleep(0.02)
        raise BenchError(
            f"{name} did not become ready on port {port}; its last lines:\n{self.tail(name)}"
        )


def _kill(pids: Sequence[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def ask(
    port: int, method: str, path: str, body: bytes | None = None, *, timeout_s: float = 20.0
) -> tuple[int, bytes]:
    """One request on a connection of its own: status and body.

    Raises:
        OSError: nobody listens, or the time is over.
        http.client.HTTPException: the answer was cut off.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()
