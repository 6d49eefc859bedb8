"""Workers that greet, die, fall silent, and lose messages."""

import subprocess

import pytest

from qmsup.actors import workers as workers_module
from qmsup.ids import Incarnation, ModelId, RequestId
from qmsup.units import Seconds
from qmsup.wire import listening
from qmsup.wire.listening import (
    Beat,
    CutOff,
    Done,
    Granted,
    Lasts,
    Loading,
    Moved,
    Unwelcome,
)
from tests.support.children import wait_until
from tests.support.scheduler_actor import (
    EPOCH,
    ControlPeer,
    RunningScheduler,
    WorkerPeer,
    becomes,
    lease,
)


def test_a_stranger_is_asked_to_greet_and_then_served(running: RunningScheduler) -> None:
    worker = running.worker(greets=False)

    worker.ask("r1")
    asked = worker.hears(Unwelcome)
    assert asked.greet
    assert worker.greet() == listening.Welcome(version=listening.VERSION, epoch=EPOCH)
    worker.ask("r1")

    worker.hears(Granted)


def test_a_worker_brings_along_what_waits_in_it(
    running: RunningScheduler, client: ControlPeer
) -> None:
    worker = running.worker(greets=False)

    worker.greet(
        waiting=(listening.Waiting(request=RequestId("r1"), model=ModelId("m"), waited_ms=60_000),)
    )

    assert worker.hears(Granted).waited_ms >= 60_000


def test_a_lease_on_a_child_that_never_was_is_cut(running: RunningScheduler) -> None:
    worker = running.worker(greets=False)
    never = listening.Holding(
        request=RequestId("r1"), model=ModelId("m"), incarnation=Incarnation(3_000_099)
    )

    worker.greet(leases=(never,))

    cut = worker.hears(CutOff)
    assert (cut.request, cut.code, cut.had_lapsed) == ("r1", "model_unloaded", True)


def test_a_killed_worker_frees_what_it_held(running: RunningScheduler, client: ControlPeer) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        worker = running.worker(greets=False)
        worker.greet(pid=process.pid)
        worker.takes_up("r1")
        worker.ask("r2", "slow")
        becomes(lambda: client.worker()["waiting"], 1)

        process.kill()

    becomes(client.worker, {})
    assert client.model()["inflight"] == 0
    assert client.model("slow")["queued"] == 0


def test_a_worker_whose_process_is_gone_is_not_welcomed(
    running: RunningScheduler, client: ControlPeer
) -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    worker = running.worker(greets=False)

    worker.say(worker.hello(pid=process.pid), Beat(waiting=0, held=0))

    assert worker.hears(Unwelcome).greet
    assert client.worker() == {}


def test_a_silent_worker_gets_nothing_until_it_greets_again(
    running: RunningScheduler,
    client: ControlPeer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    worker = running.worker()
    for request in ("r1", "r2"):
        worker.takes_up(request)
    worker.ask("r3")
    worker.hears(Moved)
    monkeypatch.setattr(workers_module, "_SILENCE", Seconds(0.3))
    worker.say(Beat(waiting=1, held=2))  # from here on it is looked at so often
    wait_until(lambda: "worker.silent" in caplog.messages)

    worker.say(Done(request=RequestId("r1"), outcome="finished"))
    assert worker.hears(Unwelcome).greet
    assert client.worker()["held"] == 2
    r3 = listening.Waiting(request=RequestId("r3"), model=ModelId("m"))
    worker.greet(leases=(lease("r2"),), waiting=(r3,))

    assert worker.hears(Granted).request == "r3"
    assert client.model()["inflight"] == 2


def test_a_further_use_that_lasts_is_shown_under_its_own_name(
    worker: WorkerPeer, client: ControlPeer
) -> None:
    worker.takes_up("r1")

    worker.say(
        Lasts(request=RequestId("r2"), model=ModelId("m"), incarnation=Incarnation(1)),
        Done(request=RequestId("r1"), outcome="finished"),
    )

    becomes(lambda: [told["lease"] for told in client.body("leases")["leases"]], ["r2"])
    assert client.model()["inflight"] == client.worker()["held"] == 1
    assert "in use for m" in client.body("explain", request="r2")["story"][-1]["text"]
    worker.say(Done(request=RequestId("r2"), outcome="finished"))
    becomes(lambda: client.model()["inflight"], 0)


def beats_until_asked_to_greet(worker: WorkerPeer, *, waiting: int = 0, held: int = 0) -> None:
    worker.say(Beat(waiting=waiting, held=held), Beat(waiting=waiting, held=held))
    assert worker.hears(Unwelcome).greet


def test_a_lease_whose_end_was_lost_is_freed(worker: WorkerPeer, client: ControlPeer) -> None:
    worker.takes_up("r1")  # its Done never comes
    beats_until_asked_to_greet(worker)

    worker.greet()

    assert client.model()["inflight"] == 0
    assert client.worker()["held"] == 0


def test_a_waiter_whose_leaving_was_lost_is_forgotten(
    worker: WorkerPeer, client: ControlPeer
) -> None:
    worker.ask("r1", "slow")
    worker.hears(Loading)
    beats_until_asked_to_greet(worker)

    worker.greet()

    becomes(lambda: client.model("slow")["state"], "starting")
    assert client.model("slow")["queued"] == 0


def test_a_lease_whose_acceptance_was_lost_is_held(worker: WorkerPeer, client: ControlPeer) -> None:
    worker.ask("r1")
    worker.hears(Granted)
    beats_until_asked_to_greet(worker, held=1)

    worker.greet(leases=(lease("r1"),))
    worker.say(Beat(waiting=0, held=1), Beat(waiting=0, held=1), Beat(waiting=0, held=1))

    assert client.worker()["held"] == 1
    assert not worker.listens()


def test_a_cut_that_was_lost_is_said_again(worker: WorkerPeer, client: ControlPeer) -> None:
    worker.takes_up("r1")
    assert client.body("unload", models=["m"]) == {"stopped": ["m"], "text": "unloaded"}
    assert not worker.hears(CutOff).had_lapsed  # as if it had not been heard
    beats_until_asked_to_greet(worker, held=1)

    worker.greet(leases=(lease("r1"),))

    assert worker.hears(CutOff).request == "r1"


def test_beats_that_agree_are_not_answered(worker: WorkerPeer, client: ControlPeer) -> None:
    worker.takes_up("r1")
    worker.ask("r2", "slow")
    worker.hears(Moved)
    mistaken = Beat(waiting=1, held=0)

    for _ in range(3):
        worker.say(Beat(waiting=1, held=1), mistaken)
    worker.say(Beat(waiting=1, held=1))

    assert client.worker()["held"] == 1
    assert not worker.listens()


def test_a_worker_that_cannot_be_read_is_told_so_and_harms_nobody(
    running: RunningScheduler, client: ControlPeer
) -> None:
    worker = running.worker()

    worker.say_bytes(b"\x93\xa3ask\xc0\xc0")

    assert not worker.hears(Unwelcome).greet
    worker.takes_up("r1")
