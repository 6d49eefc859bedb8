"""How a child is asked to end where TERM is not the way, and what becomes of one that dies meanwhile."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pykka
import pytest

from qmsup.actors.process_manager import ProcessManager
from qmsup.core.scheduling.effects import EnsureReady, Stop
from qmsup.core.scheduling.events import ProcessFailed, ProcessReady, ProcessStopped
from qmsup.ids import EventNumber, Incarnation, ModelId
from qmsup.processes.ports import PortPool
from qmsup.spec import Kind, ModelSpec
from qmsup.units import Seconds
from tests.support.children import FIRST_PORT, Reports, fake_spec, is_alive, wait_until

M = ModelId("m")
Manager = pykka.ActorRef[ProcessManager]
DEAF = fake_spec("--ignore-term", kind=Kind.GENERIC)


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
    owner.tell(EnsureReady(cause=EventNumber(1), model=M, incarnation=Incarnation(1)))
    return reports.wait_for(ProcessReady, 1).pid


def stop(owner: Manager) -> None:
    owner.tell(Stop(cause=EventNumber(1), model=M, incarnation=Incarnation(1)))


def stopped_by(script: str, spec: ModelSpec = DEAF) -> ModelSpec:
    return replace(spec, stop_argv=("sh", "-c", script))


def log_of(places: Path) -> str:
    return (places / "state/logs/m.log").read_text()


def test_a_stop_command_ends_the_child_in_place_of_term(
    reports: Reports, owners: list[Manager], places: Path
) -> None:
    script = "echo stopping ${PID} on ${PORT}; env | grep ^QMSUP_CHILD; kill -KILL ${PID}"
    pid = ready_child(stopped_by(script), reports, owners)

    stop(owners[0])

    reports.wait_for(ProcessStopped, 1)
    assert not is_alive(pid)
    port = reports.wait_for(ProcessReady, 1).upstream.rpartition(":")[2]
    assert f"stopping {pid} on {port}" in log_of(places)


@pytest.mark.parametrize("argv", [("sh", "-c", "exit 3"), ("/nowhere/docker", "stop")])
def test_a_stop_command_that_fails_is_followed_by_term(
    reports: Reports, owners: list[Manager], argv: tuple[str, ...]
) -> None:
    spec = replace(fake_spec(kind=Kind.GENERIC), stop_argv=argv)
    pid = ready_child(spec, reports, owners)

    stop(owners[0])

    reports.wait_for(ProcessStopped, 1)
    assert not is_alive(pid)


@pytest.mark.parametrize("script", ["sleep 3600", "true", "(setsid sleep 3601 &)"])
def test_a_stop_command_that_does_not_stop_is_bounded_by_the_grace(
    reports: Reports, owners: list[Manager], script: str
) -> None:
    spec = replace(stopped_by(f"echo at work; {script}"), stop_grace=Seconds(0.4))
    pid = ready_child(spec, reports, owners)

    stop(owners[0])

    reports.wait_for(ProcessStopped, 1)
    assert not is_alive(pid)


def test_the_end_of_the_owner_runs_the_stop_command_too(
    reports: Reports, owners: list[Manager], places: Path
) -> None:
    pid = ready_child(stopped_by("echo by command; kill -KILL ${PID}"), reports, owners)

    owners[0].stop()

    assert "by command" in log_of(places)
    assert not is_alive(pid)


def test_a_command_that_is_stopped_so_may_have_another_answer_on_its_port(
    reports: Reports, owners: list[Manager]
) -> None:
    # As a script that starts a container does: what listens is no process of ours.
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        spec = ModelSpec(
            id=M,
            argv=("sleep", "3600"),
            kind=Kind.GENERIC,
            upstream=f"http://127.0.0.1:{elsewhere.getsockname()[1]}",
            ready_check="tcp",
            stop_argv=("sh", "-c", "kill ${PID}"),
        )
        ready_child(spec, reports, owners)

        stop(owners[0])
        reports.wait_for(ProcessStopped, 1)


def test_all_of_a_child_is_asked_to_end_and_has_time_for_it(
    reports: Reports, owners: list[Manager], places: Path
) -> None:
    # The leader is gone at once; its server, in a session of its own, needs a moment to end well.
    server = (
        "trap 'sleep 0.2; echo ended well; exit' TERM; echo waiting; while :; do sleep 0.05; done"
    )
    script = f'setsid sh -c "{server}" & exec sleep 3600'
    spec = replace(DEAF, argv=("sh", "-c", script), ready_check="none", stop_grace=Seconds(20.0))
    ready_child(spec, reports, owners)
    wait_until(lambda: "waiting" in log_of(places))

    stop(owners[0])

    reports.wait_for(ProcessStopped, 1)
    assert "ended well" in log_of(places)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_child_killed_while_it_stops_has_stopped(
    reports: Reports, owners: list[Manager], number: signal.Signals
) -> None:
    pid = ready_child(DEAF, reports, owners)

    stop(owners[0])
    os.kill(pid, number)

    reports.wait_for(ProcessStopped, 1)
    assert "ProcessFailed" not in reports.kinds()


def test_a_child_frozen_while_it_stops_is_killed_after_its_grace(
    reports: Reports, owners: list[Manager]
) -> None:
    pid = ready_child(replace(fake_spec(), stop_grace=Seconds(0.3)), reports, owners)

    os.kill(pid, signal.SIGSTOP)
    stop(owners[0])

    reports.wait_for(ProcessStopped, 1)
    assert not is_alive(pid)


def test_a_program_that_cannot_run_on_this_cpu_is_told_so_behind_a_script_too(
    reports: Reports, owners: list[Manager]
) -> None:
    spec = replace(DEAF, argv=("sh", "-c", "sh -c 'kill -ILL $$'; exit $?"))
    owner = ProcessManager.start(spec=spec, report=reports, ports=PortPool(FIRST_PORT))
    owners.append(owner)

    owner.tell(EnsureReady(cause=EventNumber(1), model=M, incarnation=Incarnation(1)))

    reason = reports.wait_for(ProcessFailed, 1).reason
    assert "exited with code 132 while loading: what it ran was killed by SIGILL" in reason
    assert "another kind of CPU" in reason


@pytest.mark.parametrize("words", ["listening on", r"listening on http://\S+:\d+$"])
def test_a_line_of_the_log_may_tell_that_a_child_is_ready(
    reports: Reports, owners: list[Manager], words: str
) -> None:
    spec = replace(fake_spec("--load-seconds", "0.1"), ready_check=f"log:{words}")

    assert is_alive(ready_child(spec, reports, owners))


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_log_that_is_replaced_by_what_is_no_file_holds_up_no_stop(
    reports: Reports, owners: list[Manager], places: Path, make: Callable[[Path], None]
) -> None:
    ready_child(fake_spec(), reports, owners)
    log = places / "state/logs/m.log"
    log.unlink()
    make(log)

    stop(owners[0])
    reports.wait_for(ProcessStopped, 1)
    owners[0].tell(EnsureReady(cause=EventNumber(1), model=M, incarnation=Incarnation(2)))

    assert "remove what is there" in reports.wait_for(ProcessFailed, 2).reason
