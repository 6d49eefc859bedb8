"""A worker that speaks of what is not its own is not heard, and named; what is its own goes on as ever."""

import pytest

from qmsup.actors import ownership
from qmsup.actors.ownership import is_its_own
from qmsup.core.scheduling import events as happened
from qmsup.core.scheduling.state import State
from qmsup.ids import Incarnation, LeaseId, ModelId, RequestId, WorkerId
from qmsup.log import Log
from qmsup.spec import Spec
from qmsup.wire.listening import (
    Accepted,
    Beat,
    Declined,
    Done,
    FromWorker,
    Granted,
    Lasts,
    Leave,
    Unwelcome,
    Use,
)
from tests.support.scheduler_actor import ControlPeer, RunningScheduler, WorkerPeer, becomes, lease

R = RequestId("r1")
FORGED: dict[str, FromWorker] = {
    "done": Done(request=R, outcome="finished"),
    "lasts": Lasts(request=R, model=ModelId("m"), incarnation=Incarnation(1)),
    "declined": Declined(request=R),
    "leave": Leave(request=R),
    "done, and used again": Done(
        request=R, outcome="finished", uses=(Use(request=RequestId("r2"), outcome="finished"),)
    ),
}


@pytest.fixture(autouse=True)
def nothing_told_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what peers send few lines are written, over all tests."""
    monkeypatch.setattr(ownership, "_log", Log("workers"))


def heard(worker: WorkerPeer) -> None:
    """Wait until what a worker has said was read: two beats that differ have it greet."""
    worker.say(Beat(waiting=9, held=9), Beat(waiting=9, held=9))
    worker.hears(Unwelcome)


@pytest.mark.parametrize("forged", FORGED.values(), ids=list(FORGED))
def test_the_lease_of_another_worker_stays(
    forged: FromWorker,
    running: RunningScheduler,
    client: ControlPeer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    worker, forger = running.worker(), running.worker("evil-2-def")
    worker.takes_up("r1")

    forger.say(forged)
    heard(forger)

    assert client.model()["inflight"] == 1
    assert "worker.not_its_own" in caplog.messages
    worker.say(Done(request=R, outcome="finished"))
    becomes(lambda: client.model()["inflight"], 0)


def test_an_offer_is_accepted_by_whom_it_was_made_to(
    running: RunningScheduler, client: ControlPeer, caplog: pytest.LogCaptureFixture
) -> None:
    worker, forger = running.worker(), running.worker("evil-2-def")
    worker.ask("r1")
    worker.hears(Granted)

    forger.say(Accepted(request=R))
    heard(forger)

    assert "worker.not_its_own" in caplog.messages
    worker.say(Declined(request=R))
    becomes(lambda: client.model()["inflight"], 0)


def test_who_waits_is_not_sent_away_by_another(
    running: RunningScheduler, client: ControlPeer
) -> None:
    worker, forger = running.worker(), running.worker("evil-2-def")
    for request in ("r1", "r2"):
        worker.takes_up(request)
    worker.ask("r3")
    becomes(lambda: client.model()["queued"], 1)

    forger.say(Leave(request=RequestId("r3")))
    heard(forger)

    assert client.model()["queued"] == 1


@pytest.mark.parametrize("forged", FORGED.values(), ids=list(FORGED))
def test_no_worker_ends_a_job_and_any_client_may(
    forged: FromWorker, running: RunningScheduler, client: ControlPeer
) -> None:
    forger = running.worker("evil-2-def")
    client.body("lease", model="m", ttl_s=60, purpose="render", owner="x", lease="r1")

    forger.say(forged)
    heard(forger)

    assert [lease["lease"] for lease in client.body("leases")["leases"]] == ["r1"]
    running.client("ctl-2-def").body("release", lease="r1")
    becomes(lambda: client.body("leases")["leases"], [])


def test_a_greeting_takes_no_lease_from_another(
    running: RunningScheduler, client: ControlPeer
) -> None:
    running.worker().takes_up("r1")

    running.worker("evil-2-def", greets=False).greet(leases=(lease("r1"),))

    (told,) = client.body("leases")["leases"]
    assert told["owner"] == "main-1-abc"


def test_a_request_of_a_route_is_its_workers() -> None:
    state = State(Spec(models={}), Incarnation(1))
    said = happened.LeaseReleased(lease=LeaseId("r1"), outcome=happened.Outcome.FINISHED)
    ann, bob = WorkerId("ann"), WorkerId("bob")

    assert is_its_own(ann, said, state, lambda _: ann)
    assert not is_its_own(ann, said, state, lambda _: bob)
    assert is_its_own(ann, said, state, lambda _: None), "what nobody knows harms nobody"
    assert is_its_own(ann, happened.Woke(), state, lambda _: bob)
