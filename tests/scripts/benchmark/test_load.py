"""The load generator against the canned child, both as processes, as a run of the benchmark has them."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts.benchmark import plans, programs, wishes
from scripts.benchmark.clients import Held
from scripts.benchmark.notes import Notes
from scripts.benchmark.plans import Plan, Result
from scripts.benchmark.wishes import Wish

ROOT = Path(__file__).resolve().parents[3]
CHAT = "/v1/chat/completions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """The canned child, ready."""

    port: int
    notes: Notes


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    file = tmp_path / "notes"
    argv = [sys.executable, "-m", "scripts.benchmark.upstream", "--port", str(port)]
    process = subprocess.Popen([*argv, "--notes", str(file), "--load-ms", "50"], cwd=ROOT)
    try:
        notes = Notes(file)
        assert notes.wait("ready")["port"] == port
        yield Child(port=port, notes=notes)
    finally:
        process.kill()
        process.wait()


def run(plan: Plan) -> Result:
    argv = [sys.executable, "-m", "scripts.benchmark.load", plans.plan_to_text(plan)]
    told = subprocess.run(argv, cwd=ROOT, capture_output=True, check=True, timeout=60).stdout
    return plans.result_from_object(json.loads(told.splitlines()[-1]))


def test_small_answers_are_counted_and_none_breaks(child: Child) -> None:
    body = wishes.body("m").decode()

    result = run(Plan(port=child.port, path=CHAT, body=body, clients=4, warm_s=0.05, measure_s=0.2))

    assert result.answers > 0
    assert (result.errors, result.bad_status, result.events) == (0, 0, 0)
    assert result.latency_us.count == result.answers


def test_each_client_asks_once_when_told_so(child: Child) -> None:
    body = wishes.body("m", Wish(events=7)).decode()

    result = run(
        Plan(port=child.port, path=CHAT, body=body, clients=9, repeats=False, measure_s=20)
    )

    assert (result.answers, result.events, result.errors) == (9, 63, 0)


def test_steady_streams_carry_the_time_of_their_making(child: Child) -> None:
    body = wishes.body("m", Wish(events=wishes.ENDLESS, hz=100)).decode()
    plan = Plan(
        port=child.port,
        path=CHAT,
        body=body,
        clients=3,
        warm_s=0.1,
        measure_s=0.3,
        stamped=True,
        in_first=True,
    )

    result = run(plan)

    assert result.events > 0
    assert result.delay_us.count == result.events
    assert result.delay_us.most < plan.measure_s * 1e6


def test_nobody_listening_is_an_error_and_no_answer() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))  # bound, not listening: refused
        port: int = probe.getsockname()[1]

        result = run(Plan(port=port, path=CHAT, body="{}", clients=2, repeats=False, measure_s=1))

    assert (result.answers, result.errors) == (0, 2)


def test_the_child_notes_who_left_and_ends_what_waits_at_its_gate(child: Child) -> None:
    body = wishes.body("m", Wish(events=1, gate=True, tag=7))
    with Held(child.port, body) as stays:
        leaves = Held(child.port, body)
        for client in (stays, leaves):
            client.read_to(b"\n\n\r\n")

        left = leaves.leave()

        assert child.notes.wait("aborted", tag=7)["at"] >= left
        assert json.loads(programs.ask(child.port, "GET", "/count")[1]) == {"open": 1, "aborted": 1}
        programs.ask(child.port, "GET", "/release")
        stays.read_to(b"0\r\n\r\n")


def test_the_child_says_loading_until_it_is_ready(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    argv = [sys.executable, "-m", "scripts.benchmark.upstream", "--port", str(port)]
    process = subprocess.Popen([*argv, "--load-ms", "60000"], cwd=ROOT)
    try:
        assert status_once_it_listens(port) == 503
    finally:
        process.kill()
        process.wait()


def status_once_it_listens(port: int) -> int:
    deadline = time.monotonic() + 10
    while True:
        try:
            return programs.ask(port, "GET", "/health")[0]
        except ConnectionRefusedError:
            assert time.monotonic() < deadline, "the child does not listen"
            time.sleep(0.01)
