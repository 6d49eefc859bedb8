import os
import re
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pykka
import pytest

from qmsup import child_ends
from qmsup.actors.process_manager import KeepChild, ProcessManager, SpecChanged
from qmsup.core.scheduling.effects import AbortStart, EnsureReady, Stop
from qmsup.core.scheduling.events import (
    Event,
    ProcessFailed,
    ProcessReady,
    ProcessStarting,
    ProcessStopped,
)
from qmsup.ids import EventNumber, Incarnation, ModelId
from qmsup.processes.ports import PortPool
from qmsup.spec import Kind, ModelSpec
from qmsup.units import Seconds
from qmsup.upstream.probe import Probe
from qmsup.upstream.readiness import ReadinessCheck
from tests.support.children import (
    FIRST_PORT,
    Reports,
    fake_command,
    fake_spec,
    is_alive,
    wait_until,
)

M = ModelId("m")
Manager = pykka.ActorRef[ProcessManager]
Manage = Callable[[ModelSpec], Manager]


@pytest.fixture
def reports() -> Reports:
    return Reports()


@pytest.fixture
def manage(places: Path, reports: Reports) -> Iterator[Manage]:
    ports = PortPool(FIRST_PORT)
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


def abort(incarnation: int) -> AbortStart:
    return AbortStart(cause=EventNumber(1), model=M, incarnation=Incarnation(incarnation))


def test_a_child_is_started_found_ready_and_stopped(
    manage: Manage, reports: Reports, places: Path
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
    wait_until(lambda: not list(places.glob("state/children/*")))


def test_a_ready_child_that_is_wanted_again_is_reported_again(
    manage: Manage, reports: Reports
) -> None:
    owner = manage(fake_spec())

    owner.tell(ensure(1))
    first = reports.wait_for(ProcessReady, 1)
    owner.tell(ensure(1))

    assert reports.wait_for(ProcessReady, 1, count=2) == first


SPINS = """
import sys, threading, http.server as http
class Answer(http.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
server = http.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answer)
threading.Thread(target=server.serve_forever).start()
while True:
    pass
"""


def test_a_child_that_is_at_work_all_the_time_is_found_ready_too(
    manage: Manage, reports: Reports
) -> None:
    argv = (sys.executable, "-S", "-c", SPINS, "${PORT}")
    owner = manage(replace(fake_spec(), argv=argv, kind=Kind.GENERIC, ready_check="/health"))

    owner.tell(ensure(1))

    assert reports.wait_for(ProcessReady, 1).pid


def test_a_missing_program_is_named_with_what_to_do(manage: Manage, reports: Reports) -> None:
    owner = manage(replace(fake_spec(), argv=("/nowhere/llama-server", "-m", "a.gguf")))

    owner.tell(ensure(1))

    reason = reports.wait_for(ProcessFailed, 1).reason
    assert "/nowhere/llama-server" in reason
    assert "models.m.cmd" in reason
    assert reports.kinds() == ["ProcessFailed"]


def test_a_child_that_ends_while_loading_is_told_with_its_last_words(
    manage: Manage, reports: Reports
) -> None:
    owner = manage(fake_spec("--load-seconds", "0.05", "--exit-code", "1"))

    owner.tell(ensure(1))

    failed = reports.wait_for(ProcessFailed, 1)
    assert failed.reason.startswith("the child exited with code 1 while loading: its model")
    assert failed.last_lines.endswith("exiting due to model loading error")


@pytest.mark.parametrize("state", [ProcessStarting, ProcessReady])
def test_a_killed_child_is_noticed_at_once(
    manage: Manage,
    reports: Reports,
    places: Path,
    state: type[ProcessStarting] | type[ProcessReady],
) -> None:
    is_loading = state is ProcessStarting
    owner = manage(fake_spec("--load-seconds", "3600" if is_loading else "0"))
    owner.tell(ensure(1))

    os.kill(reports.wait_for(state, 1).pid, signal.SIGKILL)

    words = "was killed by SIGKILL while " + ("loading" if is_loading else "ready")
    assert words in reports.wait_for(ProcessFailed, 1).reason
    assert words in child_ends.found(places / "state/logs/m.log", Incarnation(1))


def test_a_child_deaf_to_term_is_killed_after_its_grace(manage: Manage, reports: Reports) -> None:
    owner = manage(replace(fake_spec("--ignore-term"), stop_grace=Seconds(0.2)))
    owner.tell(ensure(1))
    pid = reports.wait_for(ProcessReady, 1).pid

    owner.tell(stop(1))

    reports.wait_for(ProcessStopped, 1)
    assert not is_alive(pid)


def test_an_open_request_does_not_keep_a_child_beyond_its_grace(
    manage: Manage, reports: Reports
) -> None:
    spec = fake_spec("--stall", "posts", kind=Kind.GENERIC)
    owner = manage(replace(spec, stop_grace=Seconds(0.3)))
    owner.tell(ensure(1))
    host, _, port = reports.wait_for(ProcessReady, 1).upstream.partition(":")

    with socket.create_connection((host, int(port))) as client:
        client.sendall(b"POST /completion HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
        owner.tell(stop(1))
        reports.wait_for(ProcessStopped, 1)


@pytest.mark.parametrize("where", ["same-session", "own-session"])
def test_what_a_child_started_ends_with_it(
    manage: Manage, reports: Reports, places: Path, where: str
) -> None:
    owner = manage(replace(fake_spec("--grandchild", where), stop_grace=Seconds(0.3)))
    owner.tell(ensure(1))
    reports.wait_for(ProcessReady, 1)
    grandchild = grandchild_in(places)

    owner.tell(stop(1))

    reports.wait_for(ProcessStopped, 1)
    assert not is_alive(grandchild)


def test_what_a_child_started_ends_when_it_dies_by_itself(
    manage: Manage, reports: Reports, places: Path
) -> None:
    owner = manage(fake_spec("--grandchild", "own-session"))
    owner.tell(ensure(1))
    pid = reports.wait_for(ProcessReady, 1).pid
    grandchild = grandchild_in(places)

    os.kill(pid, signal.SIGSEGV)

    assert "SIGSEGV" in reports.wait_for(ProcessFailed, 1).reason
    assert not is_alive(grandchild)


def test_a_child_that_floods_its_log_is_ready_all_the_same(
    manage: Manage, reports: Reports, places: Path
) -> None:
    owner = manage(fake_spec("--spam-log", "5000000", "--exit-code", "3"))

    owner.tell(ensure(1))

    assert len(reports.wait_for(ProcessFailed, 1).last_lines) < 10_000
    assert (places / "state/logs/m.log").stat().st_size > 4_900_000


@pytest.mark.parametrize("order", [stop, abort])
def test_a_start_that_is_not_wanted_any_more_ends(
    manage: Manage, reports: Reports, order: Callable[[int], Stop | AbortStart]
) -> None:
    owner = manage(fake_spec("--load-seconds", "3600"))
    owner.tell(ensure(1))
    pid = reports.wait_for(ProcessStarting, 1).pid

    owner.tell(order(1))

    reports.wait_for(ProcessStopped, 1)
    assert not is_alive(pid)
    assert reports.kinds() == ["ProcessStarting", "ProcessStopped"]


def test_a_stop_of_what_never_was_is_answered(manage: Manage, reports: Reports) -> None:
    owner = manage(fake_spec())

    owner.tell(stop(7))

    reports.wait_for(ProcessStopped, 7)


def test_a_model_wanted_while_it_stops_is_started_when_it_is_gone(
    manage: Manage, reports: Reports
) -> None:
    owner = manage(replace(fake_spec("--ignore-term"), stop_grace=Seconds(0.3)))
    owner.tell(ensure(1))
    reports.wait_for(ProcessReady, 1)

    owner.tell(stop(1))
    owner.tell(ensure(2))

    reports.wait_for(ProcessReady, 2)
    assert reports.kinds() == [
        "ProcessStarting",
        "ProcessReady",
        "ProcessStopped",
        "ProcessStarting",
        "ProcessReady",
    ]


def test_a_start_that_takes_too_long_fails_with_what_was_last_seen(
    manage: Manage, reports: Reports
) -> None:
    spec = fake_spec("--load-seconds", "3600")
    owner = manage(replace(spec, start_timeout=Seconds(2.0)))  # an interpreter starts in it

    owner.tell(ensure(1))

    reason = reports.wait_for(ProcessFailed, 1).reason
    assert "not ready within 2 s" in reason
    assert "/props answered 503" in reason


def test_a_frozen_child_does_not_hold_up_its_owner(manage: Manage, reports: Reports) -> None:
    owner = manage(replace(fake_spec("--load-seconds", "3600"), stop_grace=Seconds(0.2)))
    owner.tell(ensure(1))
    os.kill(reports.wait_for(ProcessStarting, 1).pid, signal.SIGSTOP)

    owner.tell(stop(5))
    reports.wait_for(ProcessStopped, 5)
    owner.tell(stop(1))

    reports.wait_for(ProcessStopped, 1)


@pytest.mark.parametrize("check", ["none", "tcp", "/v1/models", "status:404 /there/is/none"])
def test_readiness_can_be_checked_otherwise(manage: Manage, reports: Reports, check: str) -> None:
    owner = manage(replace(fake_spec(), ready_check=check))

    owner.tell(ensure(1))

    assert reports.wait_for(ProcessReady, 1).total_slots is None


def test_a_child_behind_a_script_is_as_good_as_one_without(
    manage: Manage, reports: Reports, places: Path
) -> None:
    line = shlex.join(fake_command("--grandchild")) + "; true"  # so that the shell stays
    owner = manage(
        replace(
            fake_spec(),
            stop_grace=Seconds(0.5),
            argv=("sh", "-c", line.replace("'${PORT}'", "${PORT}")),
        )
    )

    owner.tell(ensure(1))
    ready = reports.wait_for(ProcessReady, 1)
    (server,) = psutil.Process(ready.pid).children()
    grandchild = grandchild_in(places)
    owner.tell(stop(1))
    reports.wait_for(ProcessStopped, 1)

    assert not any(is_alive(pid) for pid in (ready.pid, server.pid, grandchild))


def test_a_changed_command_counts_from_the_next_start(manage: Manage, reports: Reports) -> None:
    owner = manage(fake_spec("--slots", "1"))
    owner.tell(ensure(1))
    reports.wait_for(ProcessReady, 1)

    owner.tell(SpecChanged(spec=fake_spec("--slots", "2")))
    owner.tell(ensure(1))
    assert reports.wait_for(ProcessReady, 1, count=2).total_slots == 1
    owner.tell(stop(1))
    owner.tell(ensure(2))

    assert reports.wait_for(ProcessReady, 2).total_slots == 2


@pytest.mark.parametrize("seconds", ["0", "3600"])
def test_an_owner_that_ends_takes_its_child_along(
    manage: Manage, reports: Reports, seconds: str
) -> None:
    owner = manage(fake_spec("--load-seconds", seconds))
    owner.tell(ensure(1))
    pid = reports.wait_for(ProcessStarting, 1).pid

    owner.stop()

    assert not is_alive(pid)


def test_an_owner_that_is_told_so_leaves_its_ready_child(
    manage: Manage, reports: Reports, places: Path
) -> None:
    owner = manage(fake_spec())
    owner.tell(ensure(1))
    pid = reports.wait_for(ProcessReady, 1).pid

    owner.tell(KeepChild())
    owner.stop()

    assert is_alive(pid)
    assert len(list(places.glob("state/children/*.json"))) == 1
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_a_failure_of_the_owner_is_the_failure_of_its_child(places: Path, reports: Reports) -> None:
    def report_or_break(event: Event) -> None:
        reports(event)
        if isinstance(event, ProcessReady):
            raise RuntimeError("as if we had a bug")  # noqa: TRY004

    owner = ProcessManager.start(
        spec=fake_spec(), report=report_or_break, ports=PortPool(FIRST_PORT)
    )

    owner.tell(ensure(1))

    assert "as if we had a bug" in reports.wait_for(ProcessFailed, 1).reason
    assert not is_alive(reports.wait_for(ProcessReady, 1).pid)


@pytest.mark.parametrize("ends_in_time", [True, False])
def test_a_child_that_kill_does_not_end_is_reported_and_buried_when_it_does(
    manage: Manage,
    reports: Reports,
    places: Path,
    monkeypatch: pytest.MonkeyPatch,
    ends_in_time: bool,
) -> None:
    # A process that hangs in the kernel cannot be had here, so our KILL is one that does not kill.
    monkeypatch.setattr("qmsup.processes.stop.kill_all", lambda _child, _alone=None: True)
    monkeypatch.setattr("qmsup.core.lifecycle.machine.KILL_PATIENCE", 0.05)
    owner = manage(replace(fake_spec("--ignore-term"), stop_grace=Seconds(0.05)))
    owner.tell(ensure(1))
    pid = reports.wait_for(ProcessReady, 1).pid

    owner.tell(stop(1))

    assert "hangs in the kernel" in reports.wait_for(ProcessFailed, 1).reason
    assert is_alive(pid)
    assert len(list(places.glob("state/children/*.json"))) == 1
    if ends_in_time:
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not psutil.pid_exists(pid))
        assert not list(places.glob("state/children/*.json"))
    else:
        owner.stop()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_a_probe_without_a_descriptor_is_a_probe_that_failed(
    manage: Manage, reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(_check: ReadinessCheck) -> Probe:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(ReadinessCheck, "ask", none_left)
    owner = manage(replace(fake_spec(), start_timeout=Seconds(0.3)))

    owner.tell(ensure(1))

    assert "no probe: Too many open files" in reports.wait_for(ProcessFailed, 1).reason


def test_an_upstream_that_is_no_address_is_a_start_that_failed(
    manage: Manage, reports: Reports
) -> None:
    owner = manage(replace(fake_spec(), upstream="nowhere"))

    owner.tell(ensure(1))

    assert "models.m.proxy" in reports.wait_for(ProcessFailed, 1).reason


def grandchild_in(places: Path) -> int:
    log = places / "state/logs/m.log"
    found: list[str] = []

    def has_spoken() -> bool:
        found[:] = re.findall(r"^grandchild (\d+)$", log.read_text(), re.MULTILINE)
        return bool(found)

    wait_until(has_spoken)
    return int(found[0])
