"""The scheduler process without the process: a real socket, real children, and a worker that says what it is told."""

from pathlib import Path

from qmsup.ids import ModelId, RequestId
from qmsup.spec import SchedulerSpec
from qmsup.units import Seconds
from qmsup.wire.listening import (
    Accepted,
    Declined,
    Done,
    Granted,
    Leave,
    Loading,
    Moved,
    Refused,
)
from tests.support.scheduler_actor import (
    EPOCH,
    FIRST_INCARNATION,
    QUICK,
    ControlPeer,
    WorkerPeer,
    becomes,
    models_of,
    scheduler_of,
)


def test_a_request_loads_its_model_is_granted_and_frees_its_lease(
    worker: WorkerPeer, client: ControlPeer
) -> None:
    worker.ask("r1", streaming=True)
    assert worker.hears(Loading) == Loading(request=RequestId("r1"))
    granted = worker.hears(Granted)
    row = client.model()
    assert granted == Granted(
        request=RequestId("r1"),
        epoch=EPOCH,
        model=ModelId("m"),
        incarnation=FIRST_INCARNATION,
        upstream=f"127.0.0.1:{row['port']}",
        was_ready=False,
        waited_ms=granted.waited_ms,
    )
    worker.say(Accepted(request=granted.request))
    becomes(lambda: client.worker()["held"], 1)

    worker.say(Done(request=granted.request, outcome="finished"))
    becomes(lambda: client.model()["inflight"], 0)
    assert client.worker()["held"] == 0

    worker.ask("r2")
    again = worker.hears(Granted)
    assert again.was_ready
    assert again.incarnation == granted.incarnation


def test_who_finds_the_model_full_is_told_its_place_and_may_leave(
    worker: WorkerPeer, client: ControlPeer
) -> None:
    for request in ("r1", "r2"):
        worker.takes_up(request)

    worker.ask("r3")
    assert worker.hears(Moved).places == (("r3", 1),)
    assert client.model()["queued"] == 1
    assert client.worker()["waiting"] == 1
    worker.say(Leave(request=RequestId("r3")))

    becomes(lambda: client.model()["queued"], 0)


def test_an_ask_that_is_repeated_gets_the_same_answer(worker: WorkerPeer) -> None:
    worker.ask("r1")
    first = worker.hears(Granted)
    worker.ask("r1")

    assert worker.hears(Granted) == first


def test_an_offer_that_nobody_takes_up_lapses(places: Path, checked: None) -> None:
    spec = models_of(QUICK, scheduler=SchedulerSpec(offer_timeout=Seconds(0.2)))
    with scheduler_of(spec, places) as running:
        worker, client = running.worker(), running.client()
        worker.ask("r1")
        granted = worker.hears(Granted)
        becomes(lambda: client.model()["inflight"], 0)

        worker.say(Accepted(request=granted.request))  # late, and the child is still there

        becomes(lambda: client.worker()["held"], 1)


def test_a_model_that_is_not_configured_is_refused_with_what_is_like_it(
    worker: WorkerPeer,
) -> None:
    worker.ask("r1", "sloww")

    refused = worker.hears(Refused)

    assert (refused.request, refused.code) == ("r1", "model_not_found")
    assert "slow" in refused.message


def test_a_child_that_does_not_start_is_told_to_who_waits(
    worker: WorkerPeer, client: ControlPeer
) -> None:
    worker.ask("r1", "broken")

    refused = worker.hears(Refused)

    assert refused.code == "model_load_failed"
    assert "3" in refused.message
    row = client.model("broken")
    assert (row["state"], row["pid"]) == ("failed", None)
    assert row["error"]


def test_a_grant_that_was_taken_up_can_still_be_declined(
    worker: WorkerPeer, client: ControlPeer
) -> None:
    granted = worker.takes_up("r1")
    becomes(lambda: client.worker()["held"], 1)

    worker.say(Declined(request=granted.request))

    becomes(lambda: client.model()["inflight"], 0)
