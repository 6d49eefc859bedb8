from collections.abc import Callable, Iterator
from pathlib import Path

import pykka
import pytest

from qmsup.actors.process_manager import ProcessManager
from qmsup.core.scheduling.effects import EnsureReady, Stop
from qmsup.core.scheduling.events import (
    ProcessReady,
    ProcessStarting,
    ProcessStopped,
)
from qmsup.ids import EventNumber, Incarnation, ModelId
from qmsup.processes.ports import PortPool
from qmsup.spec import ModelSpec
from tests.support.children import Reports, fake_spec, is_alive

M = ModelId("m")
Manager = pykka.ActorRef[ProcessManager]


@pytest.fixture
def reports() -> Reports:
    return Reports()


@pytest.fixture
def manage(places: Path, reports: Reports) -> Iterator[Callable[[ModelSpec], Manager]]:
    ports = PortPool(21000)
    refs: list[Manager] = []

    def start(spec: ModelSpec) -> Manager:
        refs.append(ProcessManager.start(spec=spec, report=reports, ports=ports))
        return refs[-1]

    yield start
    for ref in refs:
        ref.stop()


def ensure(incarnation: int) -> EnsureReady:
    return EnsureReady(cause=EventNumber(1), model=M, incarnation=Incarnation(incarnation))


def stop(incarnation: int) -> Stop:
    return Stop(cause=EventNumber(1), model=M, incarnation=Incarnation(incarnation))


def test_a_child_is_started_found_ready_and_stopped(
    manage: Callable[[ModelSpec], Manager], reports: Reports
) -> None:
    owner = manage(fake_spec("--load-seconds", "0.1", "--slots", "3"))

    owner.tell(ensure(1))
    ready = reports.wait_for(ProcessReady, 1)
    owner.tell(stop(1))
    reports.wait_for(ProcessStopped, 1)

    assert reports.kinds() == ["ProcessStarting", "ProcessReady", "ProcessStopped"]
    started = reports.wait_for(ProcessStarting, 1)
    assert ready.pid == started.pid
    assert ready.upstream == f"127.0.0.1:{started.port}"
    assert ready.total_slots == 3
    assert not is_alive(ready.pid)
