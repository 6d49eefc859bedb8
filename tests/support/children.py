"""Fake children for tests, and waiting for what becomes of them."""

import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import psutil

from qmsup.core.scheduling.events import (
    Event,
    ProcessFailed,
    ProcessReady,
    ProcessStarting,
    ProcessStopped,
)
from qmsup.errors import ChildError
from qmsup.ids import Incarnation, ModelId
from qmsup.processes import procfs, records, stop
from qmsup.processes.child import NONCE_VARIABLE, Child
from qmsup.processes.command import Launch
from qmsup.processes.spawn import spawn
from qmsup.spec import Kind, ModelSpec
from qmsup.units import Seconds
from tests.support.claiming import BLOCK, claim_ports

FAKE_CHILD = Path(__file__).parents[1] / "fakes" / "child.py"
PATIENCE = 20.0
"""Seconds a test waits for what must come; one that passes never waits so long."""

FIRST_PORT = claim_ports()
"""Where this process's tests look for ports, and no other's."""
LAST_PORT = FIRST_PORT + BLOCK - 1
"""For who names a port; a pool does not get here."""

E = TypeVar("E", bound=Event)


def fake_command(*options: str) -> tuple[str, ...]:
    """The command of a fake child, as a configuration would have it."""
    return (sys.executable, "-S", str(FAKE_CHILD), "--port", "${PORT}", *options)


def fake_spec(*options: str, model: str = "m", kind: Kind = Kind.LLAMA_SERVER) -> ModelSpec:
    """A model whose child is a fake one, with times for tests."""
    return ModelSpec(
        id=ModelId(model),
        argv=fake_command(*options),
        kind=kind,
        start_timeout=Seconds(PATIENCE),
        stop_grace=Seconds(PATIENCE),
    )


def wait_until(condition: Callable[[], bool], *, patience: float = PATIENCE) -> None:
    """Return once the condition holds; fail the test when it does not come to."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.005)


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@contextmanager
def running(
    *argv: str, model: str = "m", port: int = LAST_PORT, env: Mapping[str, str] | None = None
) -> Iterator[Child]:
    """A child of ours that no actor owns; it has ended and is reaped after the block."""
    nonce = secrets.token_hex(16)
    child = spawn(
        Launch(
            argv=argv,
            env={**os.environ, **(env or {}), NONCE_VARIABLE: nonce},
            host="127.0.0.1",
            port=port,
            nonce=nonce,
            proves_port=True,
        ),
        model=ModelId(model),
        incarnation=Incarnation(1),
    )
    with suppress(ChildError):  # a disk without room, as some tests have it
        records.write(child.record)
    mark = f"{NONCE_VARIABLE}={nonce}"  # seen only when the kernel is through with exec
    wait_until(lambda: child.exit() is not None or procfs.has_in_environ(child.pid, mark))
    try:
        yield child
    finally:
        if child.process is not None and child.process.returncode is None:
            stop.end(child, grace=Seconds(0.0))


class Reports:
    """What process managers reported, in order; a test waits on it."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._news = threading.Condition()

    def __call__(self, event: Event) -> None:
        with self._news:
            self.events.append(event)
            self._news.notify_all()

    def wait_for(self, kind: type[E], incarnation: int, *, count: int = 1) -> E:
        """The report of this kind and incarnation, the `count`th of them."""

        def found() -> list[E]:
            return [
                event
                for event in self.events
                if isinstance(event, kind)
                and isinstance(
                    event, ProcessStarting | ProcessReady | ProcessStopped | ProcessFailed
                )
                and event.incarnation == Incarnation(incarnation)
            ]

        with self._news:
            came = self._news.wait_for(lambda: len(found()) >= count, PATIENCE)
            assert came, f"no {kind.__name__} of {incarnation} in {self.events}"
            return found()[count - 1]

    def kinds(self) -> list[str]:
        """The names of what was reported."""
        return [type(event).__name__ for event in self.events]
