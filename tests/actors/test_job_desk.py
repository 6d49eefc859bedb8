"""The scheduler's side of jobs, beside a real scheduler core; the watcher hears of all that comes of its wishes."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pykka
import pytest
from typing_extensions import override

from qmsup import places as folders
from qmsup.actors.job_desk import LEASE_FOR, OWNER, JobDesk
from qmsup.actors.job_news import (
    BeginJob,
    ChildGone,
    EndJob,
    JobNews,
    JobWish,
    KeepJob,
    KnownJobs,
    LeaseEnded,
    LeaseGiven,
    LeaseRefused,
)
from qmsup.actors.tree import end_actors
from qmsup.core.scheduling.effects import Answer, Cut, Effect, Grant, Record
from qmsup.core.scheduling.events import (
    DrainAsked,
    Event,
    GrantAccepted,
    LeaseReleased,
    LeaseRequested,
    ListenerJoined,
    ListenerLost,
    LiveLease,
    Outcome,
    ProcessFailed,
    ProcessReady,
    ReleaseAsked,
    RequestArrived,
    UnloadAsked,
    Woke,
)
from qmsup.core.scheduling.inheritance import AdoptedChild, Recovered
from qmsup.core.scheduling.scheduler import Scheduler
from qmsup.ids import AskId, Incarnation, LeaseId, ListenerName, ModelId, RequestId, WorkerId
from qmsup.spec import ModelSpec, Spec
from qmsup.units import Seconds

PAINT = ModelId("paint")
WORKER = WorkerId("main-1-abc")
FIRST = Incarnation(1)
R = RequestId("q-1")
J = LeaseId("qm0123456789ab")
BEGIN = BeginJob(lease=J, request=R, purpose="img_gen")
KEEP = KeepJob(lease=J, model=PAINT, incarnation=FIRST, purpose="img_gen")
GIVEN = LeaseGiven(lease=J, model=PAINT, incarnation=FIRST, upstream="127.0.0.1:5800")


class DeafDesk(JobDesk):
    """Keeps what it would tell the watcher."""

    def __init__(self) -> None:
        self.wished: list[JobWish] = []
        super().__init__(self.wished.append, lambda: None)
        self.told: list[JobNews] = []

    @override
    def _tell(self, news: JobNews) -> None:
        self.told.append(news)


@dataclass
class Office:
    """The scheduler, the desk, and what neither of them took of the answers."""

    core: Scheduler
    desk: DeafDesk
    now: Seconds = Seconds(0.0)
    effects: list[Effect] = field(default_factory=list)
    others: list[Answer] = field(default_factory=list)

    def handle(self, event: Event) -> None:
        for effect in self.core.handle(event, self.now):
            self.effects.append(effect)
            if isinstance(effect, Answer) and not self.desk.answered(effect):
                self.others.append(effect)
            if isinstance(effect, Record):
                self.desk.heard(effect)

    def take(self, wish: JobWish) -> JobNews | None:
        """What the watcher is told of a wish."""
        self.desk.told.clear()
        self.desk.take(wish, self.core.state, self.handle)
        assert len(self.desk.told) <= 1
        return self.desk.told[0] if self.desk.told else None

    def taken_anew(self) -> list[JobNews | None]:
        """What the watcher is told of wishes that were put off."""
        again = [wish for wish in self.desk.wished if isinstance(wish, BeginJob)]
        self.desk.wished.clear()
        return [self.take(wish) for wish in again]

    def arrives(self, request: RequestId = R) -> None:
        self.handle(RequestArrived(request=request, listener=WORKER, model=PAINT))

    def has_granted(self, request: RequestId) -> bool:
        return any(isinstance(x, Grant) and x.request == request for x in self.effects)


@pytest.fixture
def office(places: Path) -> Iterator[Office]:
    """Model paint is ready, and has granted its one request."""
    folders.make_private(folders.runtime_dir())
    model = ModelSpec(id=PAINT, argv=("sd-server",), slots=1, renders=True)
    office = Office(Scheduler(Spec(models={PAINT: model})), DeafDesk())
    office.handle(ListenerJoined(listener=WORKER, name=ListenerName("main"), pid=1))
    office.arrives()
    office.handle(ProcessReady(model=PAINT, incarnation=FIRST, upstream="127.0.0.1:5800", pid=99))
    office.handle(GrantAccepted(request=R))
    yield office
    end_actors()


@pytest.fixture
def new_life(places: Path) -> Iterator[Office]:
    """Model paint was gone on with, and its worker has not told yet what it has in flight."""
    folders.make_private(folders.runtime_dir())
    model = ModelSpec(id=PAINT, argv=("sd-server",), slots=1, renders=True)
    core = Scheduler(Spec(models={PAINT: model}), Incarnation(1_000_001))
    office = Office(core, DeafDesk())
    child = AdoptedChild(
        model=PAINT, incarnation=FIRST, pid=99, port=5800, upstream="127.0.0.1:5800"
    )
    others = WorkerId("main-2-def")
    office.handle(Recovered(children=(child,), workers=(WORKER, others)))
    yield office
    end_actors()


def test_a_job_that_comes_before_its_worker_has_greeted_waits_for_that(new_life: Office) -> None:
    assert new_life.take(BEGIN) is None
    assert new_life.taken_anew() == []

    live = LiveLease(request=R, model=PAINT, incarnation=FIRST)
    new_life.handle(
        ListenerJoined(listener=WORKER, name=ListenerName("main"), pid=1, leases=(live,))
    )

    assert new_life.taken_anew() == [GIVEN]
    assert new_life.core.state.leases[J].is_job


def test_a_job_that_no_worker_knows_of_is_refused_once_all_have_greeted(new_life: Office) -> None:
    assert new_life.take(BEGIN) is None
    new_life.handle(ListenerJoined(listener=WORKER, name=ListenerName("main"), pid=1))
    assert new_life.taken_anew() == [None]

    new_life.handle(ListenerLost(listener=WorkerId("main-2-def")))

    [told] = new_life.taken_anew()
    assert isinstance(told, LeaseRefused)
    assert told.refusal.code == "model_unloaded"


def test_a_job_of_a_request_under_way_has_its_lease_at_once(office: Office) -> None:
    assert office.take(BEGIN) == GIVEN

    lease = office.core.state.leases[J]
    assert (lease.owner, lease.purpose, lease.is_job) == (OWNER, "img_gen", True)
    assert office.others == []
    office.arrives(RequestId("q-2"))
    assert not office.has_granted(RequestId("q-2"))


def test_the_next_request_has_its_turn_when_the_job_has_ended(office: Office) -> None:
    office.take(BEGIN)
    office.arrives(RequestId("q-2"))
    office.handle(LeaseReleased(lease=LeaseId(R), outcome=Outcome.FINISHED))
    assert not office.has_granted(RequestId("q-2"))

    office.take(EndJob(lease=J))

    assert office.has_granted(RequestId("q-2"))
    assert office.take(EndJob(lease=J)) is None  # once more does no harm


@pytest.mark.parametrize("request_", ["q-9", ""])
def test_without_a_grant_there_is_no_job(office: Office, request_: str) -> None:
    told = office.take(BeginJob(lease=J, request=RequestId(request_), purpose="x"))

    assert isinstance(told, LeaseRefused)
    assert told.refusal.code == "model_unloaded"
    assert J not in office.core.state.leases


def test_a_jobs_lease_is_no_grant(office: Office) -> None:
    office.take(BEGIN)

    told = office.take(BeginJob(lease=LeaseId("x"), request=RequestId(J), purpose="x"))

    assert isinstance(told, LeaseRefused)


def test_a_box_that_is_drained_begins_none(office: Office) -> None:
    office.handle(DrainAsked(ask=AskId("ctl"), is_draining=True))

    told = office.take(BEGIN)

    assert isinstance(told, LeaseRefused)
    assert told.refusal.code == "draining"
    assert [answer.ask for answer in office.others] == ["ctl"]


def test_of_leases_that_are_no_known_jobs_those_of_jobs_end(office: Office) -> None:
    office.take(BEGIN)
    other = LeaseRequested(
        ask=AskId("ctl"), lease=LeaseId("mine"), model=PAINT, owner="me", ttl=Seconds(60.0)
    )
    office.handle(other)

    office.take(KnownJobs(leases=frozenset({J})))
    assert {J, "mine"} <= set(office.core.state.leases)

    office.take(KnownJobs(leases=frozenset()))
    assert set(office.core.state.leases) == {R, "mine"}


def test_a_lease_is_renewed(office: Office) -> None:
    office.take(BEGIN)
    office.now = Seconds(LEASE_FOR - 1)

    assert office.take(KEEP) == GIVEN

    office.now = Seconds(LEASE_FOR + 1)
    office.handle(Woke())
    assert J in office.core.state.leases


def test_a_lease_that_nobody_renewed_ends_and_is_taken_again(office: Office) -> None:
    office.take(BEGIN)
    office.desk.told.clear()
    office.now = Seconds(LEASE_FOR + 1)
    office.handle(Woke())
    assert office.desk.told == [LeaseEnded(lease=J, because="it was not renewed in time")]

    assert office.take(KEEP) == GIVEN

    assert J in office.core.state.leases


def test_what_an_operator_released_is_taken_again(office: Office) -> None:
    office.take(BEGIN)
    office.handle(ReleaseAsked(ask=AskId("ctl"), lease=J))

    assert office.take(KEEP) == GIVEN


def test_a_lease_ends_with_its_child_and_is_not_taken_of_another(office: Office) -> None:
    office.take(BEGIN)
    office.desk.told.clear()
    office.handle(ProcessFailed(model=PAINT, incarnation=FIRST, reason="it died"))
    assert office.desk.told == [LeaseEnded(lease=J, because="its model stopped")]
    assert office.take(KEEP) == ChildGone(lease=J)

    office.arrives(RequestId("q-2"))
    second = Incarnation(2)
    office.handle(ProcessReady(model=PAINT, incarnation=second, upstream="127.0.0.1:5801", pid=98))

    assert office.take(KEEP) == ChildGone(lease=J)
    assert J not in office.core.state.leases


def test_an_unload_ends_it_and_cuts_the_request(office: Office) -> None:
    office.take(BEGIN)
    office.handle(UnloadAsked(ask=AskId("ctl"), models=(PAINT,)))

    assert any(isinstance(effect, Cut) for effect in office.effects)
    assert office.take(KEEP) == ChildGone(lease=J)


def test_a_model_that_takes_nothing_new_is_not_waited_for(office: Office) -> None:
    office.take(BEGIN)
    office.handle(UnloadAsked(ask=AskId("ctl"), models=(PAINT,), drain=True))
    office.handle(LeaseReleased(lease=LeaseId(R), outcome=Outcome.FINISHED))
    office.handle(ReleaseAsked(ask=AskId("ctl2"), lease=J))

    told = office.take(KEEP)

    assert told is None or told == ChildGone(lease=J)
    assert office.core.state.asks.keys() <= {AskId("ctl")}


def test_a_model_that_is_not_known_any_more_has_no_jobs(office: Office) -> None:
    gone = KeepJob(lease=J, model=ModelId("gone"), incarnation=FIRST, purpose="x")

    assert office.take(gone) == ChildGone(lease=J)


def test_a_watcher_that_outlives_the_scheduler_by_a_moment_bears_it(places: Path) -> None:
    folders.make_private(folders.runtime_dir())
    breaks: list[None] = []

    def report(_: JobWish) -> None:
        raise pykka.ActorDeadError

    JobDesk(report, lambda: breaks.append(None))
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(str(folders.jobs_socket()))
        client.sendall(b"POST /sdcpp/v1/img_gen HTTP/1.1\r\n\r\n")
        with socket.socket(socket.AF_UNIX) as other:
            other.settimeout(20)
            other.connect(str(folders.jobs_socket()))
            other.sendall(b"GET /x HTTP/1.1\r\n\r\n")
            assert other.recv(100).startswith(b"HTTP/1.1 404 ")  # so it has dealt with the first
    end_actors()
    assert breaks == []
