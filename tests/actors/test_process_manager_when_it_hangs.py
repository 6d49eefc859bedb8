"""A child that answers no more: busy, stopped or wedged. The times are shorter than in earnest."""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pykka
import pytest

from qmsup.actors.process_manager import ProcessManager
from qmsup.core.lifecycle import machine, progress
from qmsup.core.scheduling.effects import EnsureReady, Stop
from qmsup.core.scheduling.events import ProcessFailed, ProcessReady, ProcessStopped
from qmsup.ids import EventNumber, Incarnation, ModelId
from qmsup.processes import procfs
from qmsup.processes.ports import PortPool
from qmsup.spec import ModelSpec
from qmsup.units import Seconds
from tests.support.children import FIRST_PORT, Reports, fake_spec, is_alive, wait_until

M = ModelId("m")
Manager = pykka.ActorRef[ProcessManager]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "ASK_EVERY", Seconds(0.1))
    monkeypatch.setattr(machine, "ANSWER_WITHIN", Seconds(0.2))


@pytest.fixture
def reports() -> Reports:
    return Reports()


@pytest.fixture
def owners(places: Path, reports: Reports) -> Iterator[list[Manager]]:
    owners: list[Manager] = []
    yield owners
    for owner in owners:
        owner.stop()


def ready_child(spec: ModelSpec, reports: Reports, owners: list[Manager]) -> int:
    owner = ProcessManager.start(spec=spec, report=reports, ports=PortPool(FIRST_PORT))
    owners.append(owner)
    owner.tell(ensure(1))
    return reports.wait_for(ProcessReady, 1).pid


def ensure(incarnation: int) -> EnsureReady:
    return EnsureReady(cause=EventNumber(1), model=M, incarnation=Incarnation(incarnation))


@pytest.mark.parametrize("check", ["/health", "status:404 /none", "tcp", "none"])
def test_a_stopped_child_is_ended_and_told_of(
    reports: Reports, owners: list[Manager], check: str
) -> None:
    pid = ready_child(replace(fake_spec(), ready_check=check), reports, owners)

    os.kill(pid, signal.SIGSTOP)

    failed = reports.wait_for(ProcessFailed, 1)
    assert "SIGSTOP" in failed.reason
    assert check == "none" or "listening on" in failed.last_lines
    assert not is_alive(pid)
    owners[0].tell(ensure(2))
    assert reports.wait_for(ProcessReady, 2).pid != pid


def test_a_child_in_which_nothing_moves_is_ended_and_told_of(
    reports: Reports, owners: list[Manager]
) -> None:
    pid = ready_child(fake_spec(), reports, owners)

    os.kill(pid, signal.SIGUSR1)

    assert "used neither CPU nor disk" in reports.wait_for(ProcessFailed, 1).reason
    assert not is_alive(pid)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Minutes are moments, and each process has a GPU open."""
    for name in ("ASK_EVERY", "LOOK_AFTER", "STALLED_AFTER"):
        monkeypatch.setattr(progress, name, Seconds(0.05))
    monkeypatch.setattr(procfs, "uses_gpu", lambda _: True)


def test_one_that_answers_but_computes_nothing_any_more_is_ended_and_told_of(
    soon: None, reports: Reports, owners: list[Manager]
) -> None:
    pid = ready_child(fake_spec("--wedged"), reports, owners)

    reason = reports.wait_for(ProcessFailed, 1).reason

    assert "it answers, but has computed one batch for" in reason
    assert not is_alive(pid)
    owners[0].tell(ensure(2))
    assert reports.wait_for(ProcessReady, 2).pid != pid


def test_one_that_gets_on_is_asked_again_and_again_and_left_alone(
    soon: None, reports: Reports, owners: list[Manager], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[int] = []
    answered = progress.Progress.answered

    def count(told: progress.Progress, now: Seconds) -> None:
        answers.append(1)
        answered(told, now)

    monkeypatch.setattr(progress.Progress, "answered", count)
    pid = ready_child(fake_spec(), reports, owners)

    wait_until(lambda: len(answers) > 3)
    assert is_alive(pid)
    owners[0].tell(Stop(cause=EventNumber(1), model=M, incarnation=Incarnation(1)))
    reports.wait_for(ProcessStopped, 1)


def test_what_hangs_behind_a_script_is_found(reports: Reports, owners: list[Manager]) -> None:
    spec = fake_spec()
    line = " ".join(spec.argv) + "; true"  # so that the shell stays
    shell = ready_child(replace(spec, argv=("sh", "-c", line)), reports, owners)
    (server,) = map(int, Path(f"/proc/{shell}/task/{shell}/children").read_text().split())

    os.kill(server, signal.SIGSTOP)

    assert "SIGSTOP" in reports.wait_for(ProcessFailed, 1).reason
    assert not is_alive(server)


def test_a_child_too_busy_to_answer_lives_on(
    reports: Reports, owners: list[Manager], monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = ready_child(replace(fake_spec(), stop_grace=Seconds(0.1)), reports, owners)
    looks: list[int] = []
    seen = machine.Lifecycle._work_seen

    def count(life: machine.Lifecycle, *args: object) -> object:
        looks.append(1)
        return seen(life, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(machine.Lifecycle, "_work_seen", count)
    os.kill(pid, signal.SIGUSR2)

    wait_until(lambda: len(looks) > 10)
    assert is_alive(pid)
    owners[0].tell(Stop(cause=EventNumber(1), model=M, incarnation=Incarnation(1)))
    reports.wait_for(ProcessStopped, 1)
    assert not is_alive(pid)
