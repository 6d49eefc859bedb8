"""`qmsup serve` as the demo's child: started, waited for, asked, stopped, and looked after for remains."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil
import requests

from scripts.demonstration.stage import QMSUP, Stage
from scripts.demonstration.telling import DemoError

_READY_WITHIN = 60.0  # seconds
_STOPPED_WITHIN = 30.0
_DECIDED_WITHIN = 30.0


class Serving:
    """The daemon of one demo, with sockets and state in a folder of its own."""

    def __init__(self, stage: Stage, environment: Mapping[str, str] | None = None) -> None:
        """Start it, with these variables beside our own."""
        self._stage = stage
        # In /tmp, not beside the configuration: the address of a Unix socket has to be short.
        self._places = Path(tempfile.mkdtemp(prefix="qmsup-", dir="/tmp"))
        self._variables = {
            "QMSUP_RUNTIME_DIR": str(self._places / "run"),
            "QMSUP_STATE_DIR": str(self._places / "state"),
        }
        self._environment = os.environ | (environment or {}) | self._variables
        with stage.log.open("wb") as log:
            self._process = subprocess.Popen(
                [QMSUP, "serve", "-c", stage.config],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,  # Ctrl-C is for the demo, which then stops this in order
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Whatever happened: nothing of ours runs on."""
        if self._process.poll() is None:
            with suppress(DemoError):  # what brought us here is the better story
                self.stop()
        self._kill_remains()
        shutil.rmtree(self._places, ignore_errors=True)

    def await_health(self) -> None:
        """Return when both listeners say that they and the scheduler are there.

        Raises:
            DemoError: `serve` ended, or they are not there in time.
        """
        deadline = time.monotonic() + _READY_WITHIN
        waiting = [f"{self._stage.url(listener)}/health" for listener in (0, 1)]
        while waiting:
            if (code := self._process.poll()) is not None:
                raise DemoError(f"qmsup serve ended with {code}:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise DemoError(f"no answer from {waiting[0]}:\n{self.log_tail()}")
            waiting = [url for url in waiting if not _is_healthy(url)]
            time.sleep(0.01)

    def ask(self, *verb: str) -> str:
        """What a command of the program prints: `ask("ps")`."""
        done = subprocess.run(
            [str(QMSUP), *verb],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise DemoError(f"qmsup {' '.join(verb)} failed ({done.returncode}): {done.stderr}")
        return done.stdout

    def decisions(self) -> list[str]:
        """What the scheduler decided, oldest first."""
        began = self._log_lines()[0]["time"]
        return [_as_text(line, since=float(str(began))) for line in self._decided()]

    def await_decision(self, event: str, after: int = 0) -> dict[str, object]:
        """The first decision of this name past the first `after` of all.

        Raises:
            DemoError: it is not taken in time.
        """
        deadline = time.monotonic() + _DECIDED_WITHIN
        while time.monotonic() < deadline:
            for line in self._decided()[after:]:
                if line["event"] == event:
                    return line
            time.sleep(0.05)
        raise DemoError(f"no {event} in the log:\n{self.log_tail()}")

    def count_decisions(self) -> int:
        """How many there are so far, for `await_decision` to look past."""
        return len(self._decided())

    def _decided(self) -> list[dict[str, object]]:
        return [line for line in self._log_lines() if line["logger"] == "qmsup.decision"]

    def _log_lines(self) -> list[dict[str, object]]:
        lines = self._stage.log.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line[:1] == "{" and line[-1] == "\n"]

    def log_tail(self) -> str:
        """The end of its log, and where the rest is."""
        last = self._stage.log.read_text(errors="replace").splitlines()[-20:]
        return "\n".join([*last, f"(all of it: {self._stage.log})"])

    def exports(self) -> str:
        """What to put before a command so that it finds this daemon."""
        return " ".join(f"{name}={value}" for name, value in self._variables.items())

    def wait(self) -> None:
        """Return when it ends by itself."""
        self._process.wait()

    def stop(self) -> None:
        """Stop it as Ctrl-C would; by force if that does not help.

        Raises:
            DemoError: it needed force, or did not end well.
        """
        self._process.send_signal(signal.SIGINT)
        try:
            code = self._process.wait(_STOPPED_WITHIN)
        except subprocess.TimeoutExpired:
            self._kill_remains()
            self._process.wait()
            raise DemoError(f"it did not stop on SIGINT:\n{self.log_tail()}") from None
        if code:
            raise DemoError(f"it ended with {code}:\n{self.log_tail()}")

    def _kill_remains(self) -> None:
        for process in self.remains():
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def remains(self) -> list[psutil.Process]:
        """Processes of this demo that still run, the daemon's and the models', by what they inherited."""
        return [
            process
            for process in psutil.process_iter(["environ"])
            if self._variables.items() <= (process.info["environ"] or {}).items()
        ]

    def taken_ports(self) -> list[int]:
        """Listeners' ports that somebody still holds."""
        return [port for port in self._stage.ports if not _is_free(port)]


def _is_healthy(url: str) -> bool:
    try:
        return requests.get(url, timeout=5).ok
    except requests.RequestException:
        return False


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def _as_text(line: dict[str, object], since: float) -> str:
    shown = {k: v for k, v in line.items() if k not in {"time", "level", "logger", "event"}}
    fields = " ".join(f"{key}={value}" for key, value in shown.items() if value is not None)
    return f"+{float(str(line['time'])) - since:6.2f} s  {line['event']:<20} {fields}"
