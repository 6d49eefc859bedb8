"""What an owner does where no descriptor is left: nothing that it cannot see is taken for gone, and all is told."""

import os
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pykka
import pytest

from qmsup.actors.process_manager import ProcessManager
from qmsup.core.scheduling.effects import EnsureReady, Stop
from qmsup.core.scheduling.events import Event, ProcessFailed, ProcessReady, ProcessStopped
from qmsup.ids import EventNumber, Incarnation, ModelId
from qmsup.processes import stop
from qmsup.processes.child import Child
from qmsup.processes.ports import PortPool
from qmsup.spec import ModelSpec
from qmsup.units import Seconds
from tests.support.children import FIRST_PORT, Reports, fake_spec, is_alive, wait_until
from tests.support.descriptors import no_descriptor_left

M = ModelId("m")
Manager = pykka.ActorRef[ProcessManager]
Manage = Callable[[ModelSpec], Manager]


@pytest.fixture
def reports() -> Reports:
    return Reports()


@pytest.fixture
def manage(places: Path, reports: Reports) -> Iterator[Manage]:
    refs: list[Manager] = []

    def start(spec: ModelSpec) -> Manager:
        refs.append(ProcessManager.start(spec=spec, report=reports, ports=PortPool(FIRST_PORT)))
        return refs[-1]

    yield start
    for ref in refs:
        ref.stop()


def ensure(incarnation: int) -> EnsureReady:
    return EnsureReady(cause=EventNumber(1), model=M, incarnation=Incarnation(incarnation))


STOP = Stop(cause=EventNumber(1), model=M, incarnation=Incarnation(1))


def has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def test_a_child_whose_rest_cannot_be_looked_for_is_gone_only_when_it_was(
    manage: Manage, reports: Reports, places: Path
) -> None:
    spec = fake_spec("--grandchild", "own-session")
    owner = manage(replace(spec, stop_grace=Seconds(0.5)))
    owner.tell(ensure(1))
    pid = reports.wait_for(ProcessReady, 1).pid
    log = places / "state/logs/m.log"
    wait_until(lambda: re.search(r"^grandchild \d+$", log.read_text(), re.MULTILINE) is not None)
    grandchild = int(log.read_text().rpartition("grandchild ")[2].split()[0])

    with no_descriptor_left():
        owner.tell(STOP)
        wait_until(lambda: has_ended(pid))

    reports.wait_for(ProcessStopped, 1)
    assert not is_alive(grandchild)


def test_a_start_that_fails_says_so_and_the_next_one_does_not(
    manage: Manage, reports: Reports
) -> None:
    owner = manage(fake_spec())

    with no_descriptor_left():
        owner.tell(ensure(1))
        failed = reports.wait_for(ProcessFailed, 1)
    owner.tell(ensure(2))

    assert "raise the limit of open files" in failed.reason
    reports.wait_for(ProcessReady, 2)


def test_an_owner_that_fails_at_its_end_too_tells_all_the_same(
    places: Path, reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    def report_or_break(event: Event) -> None:
        reports(event)
        if isinstance(event, ProcessReady):
            raise RuntimeError("as if we had a bug")  # noqa: TRY004

    def end_or_break(child: Child, **_: object) -> bool:
        child.let_go()
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(stop, "end", end_or_break)
    owner = ProcessManager.start(
        spec=fake_spec(), report=report_or_break, ports=PortPool(FIRST_PORT)
    )

    owner.tell(ensure(1))

    try:
        assert "as if we had a bug" in reports.wait_for(ProcessFailed, 1).reason
    finally:
        pid = reports.wait_for(ProcessReady, 1).pid
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
