"""The process manager with the real llama-server, where the fake one might flatter it."""

import json
import os
import signal
import socket
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pykka
import pytest

from qmsup.actors.process_manager import ProcessManager
from qmsup.core.scheduling.effects import EnsureReady, Stop
from qmsup.core.scheduling.events import (
    ProcessFailed,
    ProcessReady,
    ProcessStarting,
    ProcessStopped,
)
from qmsup.ids import EventNumber, Incarnation, ModelId
from qmsup.processes.ports import PortPool
from qmsup.spec import ModelSpec
from qmsup.units import Seconds
from tests.support.children import FIRST_PORT, Reports, is_alive
from tests.support.models import llama_server, tiny_model

M = ModelId("tiny")
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


def tiny(*options: str, **model: float) -> ModelSpec:
    path = tiny_model("alpha", **model)
    argv = (str(llama_server()), "-m", str(path), "-c", "2048", "-ngl", "0", *options)
    return ModelSpec(id=M, argv=argv, start_timeout=Seconds(20.0))


def ensure(incarnation: int) -> EnsureReady:
    return EnsureReady(cause=EventNumber(1), model=M, incarnation=Incarnation(incarnation))


def stop(incarnation: int) -> Stop:
    return Stop(cause=EventNumber(1), model=M, incarnation=Incarnation(incarnation))


def test_it_answers_and_tells_its_slots_once_ready(manage: Manage, reports: Reports) -> None:
    owner = manage(tiny())

    owner.tell(ensure(1))
    ready = reports.wait_for(ProcessReady, 1)

    assert ready.total_slots == 4
    request = urllib.request.Request(
        f"http://{ready.upstream}/v1/chat/completions",
        data=json.dumps(
            {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3}
        ).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert "alpha" in answer.read().decode()


def test_it_stops_and_starts_again_as_often_as_is_wished(manage: Manage, reports: Reports) -> None:
    owner = manage(tiny("-np", "1"))

    for number in (1, 2, 3):
        owner.tell(ensure(number))
        ready = reports.wait_for(ProcessReady, number)
        assert (ready.total_slots, ready.context) == (1, 2048)
        owner.tell(stop(number))
        reports.wait_for(ProcessStopped, number)


def test_one_that_is_killed_comes_back_with_the_next_start(
    manage: Manage, reports: Reports
) -> None:
    owner = manage(tiny())
    owner.tell(ensure(1))

    os.kill(reports.wait_for(ProcessReady, 1).pid, signal.SIGKILL)
    reports.wait_for(ProcessFailed, 1)
    owner.tell(ensure(2))

    reports.wait_for(ProcessReady, 2)


def test_a_model_file_that_does_not_load_is_told_with_the_last_lines(
    manage: Manage, reports: Reports, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(tiny_model("alpha").read_bytes()[:5000])
    spec = tiny()
    owner = manage(replace(spec, argv=(spec.argv[0], "-m", str(broken))))

    # The program may end before it has written its last lines: on a busy machine, in one of some hundred starts.
    owner.tell(ensure(1))
    failed = reports.wait_for(ProcessFailed, 1)
    for number in range(2, 6):
        if "may be missing" in failed.reason:
            owner.tell(ensure(number))
            failed = reports.wait_for(ProcessFailed, number)

    assert "its model could not be loaded: check the file after -m" in failed.reason
    assert "failed to load model" in failed.last_lines


def test_an_argument_it_does_not_know_is_told(manage: Manage, reports: Reports) -> None:
    owner = manage(tiny("--no-such-flag"))

    owner.tell(ensure(1))

    failed = reports.wait_for(ProcessFailed, 1)
    assert "--help" in failed.reason
    assert "--no-such-flag" in failed.last_lines


def test_a_fixed_port_that_is_taken_is_told(manage: Manage, reports: Reports) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        owner = manage(replace(tiny("--port", port), upstream=f"http://127.0.0.1:{port}"))

        owner.tell(ensure(1))

        assert "its port was taken" in reports.wait_for(ProcessFailed, 1).reason
        assert reports.kinds() == ["ProcessStarting", "ProcessFailed"]


def test_an_open_stream_keeps_it_no_longer_than_its_grace(manage: Manage, reports: Reports) -> None:
    owner = manage(replace(tiny(eos_p=0), stop_grace=Seconds(0.5)))
    owner.tell(ensure(1))
    ready = reports.wait_for(ProcessReady, 1)
    host, _, port = ready.upstream.partition(":")
    body = b'{"prompt": "hi", "stream": true, "n_predict": -1}'

    with socket.create_connection((host, int(port))) as client:
        client.sendall(
            b"POST /completion HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        )
        client.recv(1000)
        owner.tell(stop(1))
        reports.wait_for(ProcessStopped, 1)

    assert not is_alive(ready.pid)


def test_a_stop_in_the_moment_of_getting_ready_is_not_lost(
    manage: Manage, reports: Reports
) -> None:
    owner = manage(replace(tiny(), stop_grace=Seconds(1.0)))

    for number in range(1, 11):
        owner.tell(ensure(number))
        pid = reports.wait_for(ProcessStarting, number).pid
        if number % 2:
            reports.wait_for(ProcessReady, number)
        owner.tell(stop(number))
        reports.wait_for(ProcessStopped, number)
        assert not is_alive(pid)
