"""A process manager through many lives of its child, and through clocks that jump."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pykka
import pytest

from qmsup.actors.process_manager import ProcessManager
from qmsup.child_logs import archive_of, last_lines
from qmsup.core.scheduling.effects import EnsureReady, Stop
from qmsup.core.scheduling.events import (
    ProcessFailed,
    ProcessReady,
    ProcessStarting,
    ProcessStopped,
)
from qmsup.ids import EventNumber, Incarnation, ModelId
from qmsup.processes import rotation
from qmsup.processes.ports import PortPool
from qmsup.spec import Kind, ModelSpec
from tests.support.children import FIRST_PORT, Reports, fake_spec, wait_until

M = ModelId("m")
Manager = pykka.ActorRef[ProcessManager]
CYCLES = 200
QUICK = ModelSpec(id=M, argv=("sleep", "3600"), kind=Kind.GENERIC, ready_check="none")


@pytest.fixture
def reports() -> Reports:
    return Reports()


@pytest.fixture
def owner(places: Path, reports: Reports) -> Iterator[Manager]:
    owner = ProcessManager.start(spec=QUICK, report=reports, ports=PortPool(FIRST_PORT))
    yield owner
    owner.stop()


def ensure(incarnation: int) -> EnsureReady:
    return EnsureReady(cause=EventNumber(1), model=M, incarnation=Incarnation(incarnation))


def stop(incarnation: int) -> Stop:
    return Stop(cause=EventNumber(1), model=M, incarnation=Incarnation(incarnation))


def live_and_end(owner: Manager, reports: Reports, number: int) -> None:
    """One life of the child: told to stop when ready, or while it starts, or killed."""
    owner.tell(ensure(number))
    match number % 3:
        case 0:
            reports.wait_for(ProcessReady, number)
            owner.tell(stop(number))
            reports.wait_for(ProcessStopped, number)
        case 1:
            owner.tell(stop(number))
            reports.wait_for(ProcessStopped, number)
        case _:
            os.kill(reports.wait_for(ProcessStarting, number).pid, signal.SIGKILL)
            reports.wait_for(ProcessFailed, number)


def test_two_hundred_lives_leave_nothing_behind(
    owner: Manager, reports: Reports, places: Path
) -> None:
    here = psutil.Process()
    live_and_end(owner, reports, 1)
    before = (here.num_fds(), threading.active_count(), len(here.children()))

    for number in range(2, CYCLES + 2):
        live_and_end(owner, reports, number)

    wait_until(lambda: not list(places.glob("state/children/*")))
    assert (here.num_fds(), threading.active_count(), len(here.children())) == before
    ports = {event.port for event in reports.events if isinstance(event, ProcessStarting)}
    assert len(ports) == CYCLES + 1  # one given back comes last again
    assert {path.name for path in (places / "state/logs").iterdir()} == {"m.log", "m.end"}


def test_a_child_that_never_stops_writing_is_bounded_and_stopped_like_any_other(
    places: Path, reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotation, "LIMIT", 1024 * 1024)
    flood = "yes a line of the flood | head -c 200000000; echo the last line; exec sleep 3600"
    spec = replace(QUICK, argv=("sh", "-c", flood))
    owner = ProcessManager.start(spec=spec, report=reports, ports=PortPool(FIRST_PORT))
    log = places / "state/logs/m.log"

    owner.tell(ensure(1))
    reports.wait_for(ProcessReady, 1)
    wait_until(lambda: b"the last line" in last_lines(log, 1))
    wait_until(lambda: log.stat().st_blocks * 512 < 2_000_000)

    assert archive_of(log).stat().st_size <= 2 * 1024 * 1024
    assert log.stat().st_size > 200_000_000
    owner.tell(stop(1))
    reports.wait_for(ProcessStopped, 1)
    owner.stop()


def test_a_clock_that_jumps_changes_nothing(
    places: Path, reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = 24 * 3600.0
    jumps = iter([day, -day, 365 * day, -20 * 365 * day] * 1000)
    true = time.time
    monkeypatch.setattr(time, "time", lambda: true() + next(jumps))
    spec = replace(fake_spec("--load-seconds", "0.1"), id=M)
    owner = ProcessManager.start(spec=spec, report=reports, ports=PortPool(FIRST_PORT))

    for number in (1, 2):
        owner.tell(ensure(number))
        reports.wait_for(ProcessReady, number)
        owner.tell(stop(number))
        reports.wait_for(ProcessStopped, number)

    owner.stop()
    assert "ProcessFailed" not in reports.kinds()
