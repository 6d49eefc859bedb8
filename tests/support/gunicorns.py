"""A real gunicorn with our worker class, as a child of a test: `python -m tests.support.gunicorns PORT OPTIONS`."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from qmsup.ids import ListenerName, ModelId
from qmsup.spec import ListenerSpec, ModelSpec, Spec
from tests.support.granting import PATIENCE
from tests.support.relaying import wait_until
from tests.support.servers import free_port

_ROOT = Path(__file__).parents[2]


class Gunicorn:
    """One that runs.

    Attributes:
        port: where it listens, on 127.0.0.1.
    """

    def __init__(self, port: int, process: subprocess.Popen[bytes], log: Path) -> None:
        self.port = port
        self.process = process
        self._log = log

    def connect(self) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        client.settimeout(PATIENCE)
        return client

    def log(self) -> str:
        return self._log.read_text()

    def logs(self, event: str) -> None:
        """Wait until it has logged something."""
        wait_until(lambda: event in self.log())


@contextmanager
def gunicorn(
    log: Path, *, descriptors: int | None = None, http_parser: str = "auto", **options: object
) -> Iterator[Gunicorn]:
    """A listener `main` with one model `m`, whose scheduler is to be at the usual place.

    Args:
        log: where its stderr goes.
        descriptors: its hard limit.
        http_parser: gunicorn's setting; `python` leaves every request to the pool.
        options: of the Spec.
    """
    port = free_port()

    def limit() -> None:
        if descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    with log.open("wb") as out:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.support.gunicorns",
                str(port),
                http_parser,
                json.dumps(options),
            ],
            cwd=_ROOT,
            stdout=out,
            stderr=out,
            preexec_fn=limit,  # noqa: PLW1509 - the child does nothing but set a limit
            process_group=0,
        )
    try:
        running = Gunicorn(port, process, log)
        running.logs("Booting worker")
        yield running
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(PATIENCE)


def post(
    body: Mapping[str, Any], *, path: str = "/v1/chat/completions", headers: str = ""
) -> bytes:
    """A request for a model, as bytes."""
    text = json.dumps(body).encode()
    return (
        f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(text)}\r\n{headers}\r\n"
    ).encode() + text


def _main() -> None:
    from qmsup import log
    from qmsup.listener.app import create
    from qmsup.listener.command import ListenerApplication
    from qmsup.listener.deployment import Deployment

    port, parser, options = int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
    main = ListenerName("main")
    spec = Spec(
        models={ModelId("m"): ModelSpec(id=ModelId("m"), argv=("none",))},
        listeners={main: ListenerSpec(name=main, port=port, workers=1)},
        **options,
    )
    log.set_up(style="json")
    deployment = Deployment(spec=spec, listener=main, make_app=create)
    ListenerApplication(deployment, http_parser=parser).run()


if __name__ == "__main__":
    _main()
