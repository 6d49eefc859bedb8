"""Verbs that become a process, run as an operator would run them, in the places of a test."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.servers import free_port

_PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Daemon:
    """A process of qmsup, and what it wrote."""

    process: subprocess.Popen[bytes]
    output: Path

    def log(self) -> str:
        """All that it has written so far."""
        return self.output.read_text(errors="replace")

    def says(self, words: str, *, count: int = 1) -> None:
        """Wait until it has written this, so many times."""
        deadline = time.monotonic() + _PATIENCE
        while self.log().count(words) < count:
            assert self.process.poll() is None, f"it ended before it said {words}:\n{self.log()}"
            assert time.monotonic() < deadline, f"it did not say {words}:\n{self.log()}"
            time.sleep(0.01)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Signal it and wait; its exit code."""
        self.process.send_signal(number)
        return self.ends()

    def ends(self) -> int:
        """Wait for it; its exit code."""
        return self.process.wait(_PATIENCE)


def configuration(folder: Path, models: Mapping[str, Any], **keys: Any) -> Path:
    """A configuration file with one listener of one worker."""
    listeners = {"main": {"bind": f"127.0.0.1:{free_port()}", "workers": 1}}
    content = {
        "listeners": listeners,
        "models": models,
        "startPort": free_port(),
        "logFormat": "json",
        **keys,
    }
    path = folder / "config.yaml"
    path.write_text(json.dumps(content))
    return path


@contextmanager
def daemon(*arguments: str, folder: Path) -> Iterator[Daemon]:
    """Run `python ARGUMENTS`; what still runs at the end is told to stop."""
    output = folder / f"{arguments[-1].rpartition('/')[2][:20]}-{time.monotonic_ns()}.log"
    with output.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            stdout=log,
            stderr=log,
            env={**os.environ, "QMSUP_CHECK": "1"},
        )
    try:
        yield Daemon(process, output)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(_PATIENCE)


@contextmanager
def qmsup(verb: str, config: Path) -> Iterator[Daemon]:
    """Run `qmsup VERB -c CONFIG`."""
    with daemon("-m", "qmsup", verb, "-c", str(config), folder=config.parent) as running:
        yield running
