"""Machines that routes choose from, as fake llama-servers on ports of this one."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import requests

from tests.support.box import FAKE_CHILD, until
from tests.support.servers import free_port


@dataclass
class FakeHost:
    """A server that runs until it is ended."""

    name: str
    port: int
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stats(self) -> dict[str, Any]:
        """What it counted."""
        told: dict[str, Any] = requests.get(f"{self.url}/stats", timeout=5).json()
        return told

    def end(self) -> None:
        """Kill it, as a machine that loses its power."""
        self.process.kill()
        self.process.wait(10)


@contextmanager
def fake_host(name: str, flags: str = "", port: int = 0) -> Iterator[FakeHost]:
    """A host for as long as the block."""
    port = port or free_port()
    argv = [sys.executable, str(FAKE_CHILD), "--port", str(port), "--name", name, *flags.split()]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    host = FakeHost(name, port, process)
    try:
        until(lambda: _answers(host), what=name)
        yield host
    finally:
        host.end()


def _answers(host: FakeHost) -> bool:
    try:
        return requests.get(f"{host.url}/health", timeout=5).status_code == 200
    except requests.ConnectionError:
        return False
