"""Real programs as children of a test: started, waited for, and gone afterwards."""

import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import requests

_READY_WITHIN = 30.0  # seconds; the tiny models need hundredths of one, a loaded machine more
_GONE_WITHIN = 10.0


def free_port() -> int:
    """A TCP port on 127.0.0.1 that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def answering(command: Sequence[str | Path], log: Path) -> Iterator[str]:
    """Run a server, `--port N` added, until its /health says 200; yields `http://127.0.0.1:N`."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with log.open("wb") as out:
        child = subprocess.Popen([*command, "--port", str(port)], stdout=out, stderr=out)
        try:
            _wait_until_healthy(child, url, log)
            yield url
        finally:
            # KILL: a llama-server with an open request never ends on TERM, and nothing is lost here.
            child.kill()
            child.wait(_GONE_WITHIN)


def _wait_until_healthy(child: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + _READY_WITHIN
    while time.monotonic() < deadline:
        if child.poll() is not None:
            tail = log.read_text(errors="replace")[-2000:]
            raise AssertionError(f"ended with {child.returncode} before it was ready:\n{tail}")
        try:
            if requests.get(f"{url}/health", timeout=5).ok:
                return
        except requests.ConnectionError:
            pass  # not listening yet
        time.sleep(0.01)
    raise AssertionError(f"not ready within {_READY_WITHIN} s: see {log}")
