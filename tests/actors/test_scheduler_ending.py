"""How a scheduler ends, in order or not, and that it sleeps until then."""

import time
from pathlib import Path

import pytest

from qmsup.actors.signalled import shutdown_of
from qmsup.transport.router import RouterSocket
from qmsup.units import Seconds
from qmsup.wire.listening import (
    Done,
    Refused,
)
from tests.support.children import is_alive
from tests.support.scheduler_actor import (
    QUICK,
    SLOW,
    ControlPeer,
    WorkerPeer,
    models_of,
    scheduler_of,
)


def test_a_shutdown_in_order_lets_answers_end_and_refuses_what_waits(places: Path) -> None:
    spec = models_of(QUICK, SLOW, shutdown_drain=Seconds(20.0))
    with scheduler_of(spec, places) as running:
        worker, client = running.worker(), running.client()
        granted = worker.takes_up("r1")
        pid = client.model()["pid"]
        worker.ask("r2", "slow")

        shutdown_of(running.ref, at_once=False)
        assert worker.hears(Refused).code == "shutting_down"
        worker.ask("r3")
        assert worker.hears(Refused).code == "shutting_down"
        assert not running.ended.is_set()
        worker.say(Done(request=granted.request, outcome="finished"))

        assert running.ended.wait(20)
        assert not is_alive(pid)
        assert not running.broke.is_set()


def test_it_ends_when_a_client_asks_for_that_and_means_this_one(places: Path) -> None:
    with scheduler_of(models_of(QUICK), places) as running:
        client = running.client()
        epoch = client.body("status")["epoch"]

        assert client.body("shutdown", epoch=epoch + 1)["text"].startswith("that scheduler has")
        assert client.refusal("shutdown", epoch="1")[0] == "bad_request"
        assert not running.ended.wait(0.05)

        assert "its models are stopped" in client.body("shutdown", epoch=epoch)["text"]
        assert running.ended.wait(10)


def test_a_shutdown_at_once_waits_for_nobody(places: Path) -> None:
    with scheduler_of(models_of(QUICK, shutdown_drain=Seconds(600.0)), places) as running:
        running.worker().takes_up("r1")
        shutdown_of(running.ref, at_once=False)

        shutdown_of(running.ref, at_once=True)

        assert running.ended.wait(20)
    shutdown_of(running.ref, at_once=True)  # to one that has ended: no harm


def test_a_bug_ends_in_on_break_and_in_the_log(
    places: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with scheduler_of(models_of(QUICK), places) as running:
        running.ref.tell("no event")

        assert running.broke.wait(20)
    (record,) = [r for r in caplog.records if r.message == "scheduler.failed"]
    assert record.exc_info is not None
    assert not running.ended.is_set()


def test_a_bug_in_what_a_descriptor_calls_ends_the_process_too(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scheduler_of(models_of(QUICK), places) as running:
        worker = running.worker()
        monkeypatch.setattr(RouterSocket, "receive", lambda _: 1 / 0)

        worker.ask("r1")

        assert running.broke.wait(20)


def test_a_broken_invariant_is_found_when_looked_for(
    places: Path, checked: None, caplog: pytest.LogCaptureFixture
) -> None:
    """A state that contradicts itself is found at the next event, whatever that is."""
    with scheduler_of(models_of(QUICK), places) as running:
        actor = running.ref._actor_weakref()
        assert actor is not None
        state = actor._core.state
        state.line.size += 1

        stranger = running.worker(greets=False)
        stranger.say(stranger.hello())

        assert running.broke.wait(20)
    assert "the line says 1 waiters" in caplog.text


def test_a_socket_that_cannot_be_had_ends_in_on_break(
    places: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (places / "run" / "scheduler.sock").mkdir(parents=True)

    with scheduler_of(models_of(QUICK), places) as running:
        assert running.broke.wait(20)

    assert "scheduler.cannot_start" in caplog.messages


# ---- when nothing happens


def test_an_idle_scheduler_sleeps(worker: WorkerPeer, client: ControlPeer) -> None:
    assert client.body("load", model="m")["model"] == "m"
    before = switches()

    time.sleep(1.0)

    assert switches() - before < 100  # a busy loop makes thousands


def switches() -> int:
    """How often any thread of this process has gone to sleep."""
    tasks = Path("/proc/self/task").glob("*/status")
    lines = [line for task in tasks for line in task.read_text().splitlines()]
    return sum(int(x.split()[1]) for x in lines if x.startswith("voluntary_ctxt_switches"))
