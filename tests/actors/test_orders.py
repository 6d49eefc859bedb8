"""Each effect goes to its hand; here a real socket's gateway and a tree without children."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from qmsup.actors.gateway import Asked, Gateway
from qmsup.actors.job_desk import JobDesk
from qmsup.actors.orders import Orders
from qmsup.actors.tree import ProcessTree, end_actors
from qmsup.core.scheduling import effects as do
from qmsup.core.scheduling.memory_events import SeenBy
from qmsup.errors import Code, Refusal
from qmsup.ids import Epoch, EventNumber, ModelId, RequestId, WorkerId
from qmsup.spec import Spec
from qmsup.transport import context
from qmsup.transport.dealer import DealerSocket
from qmsup.transport.router import RouterSocket
from qmsup.units import MiB, Seconds
from qmsup.wire import codec, controlling, listening

WORKER = WorkerId("main-1-abc")
R = RequestId("q-1")
CAUSE = EventNumber(7)
NO = Refusal(code=Code.MODEL_UNLOADED, message="gone")


@dataclass(frozen=True, slots=True)
class Desk:
    """Orders, the peer that hears of them, and how often the end was called."""

    orders: Orders
    gateway: Gateway
    dealer: DealerSocket
    ends: list[None]
    remembered: list[do.Remember]

    def next_frame(self) -> bytes:
        assert self.dealer.wait(Seconds(5.0))
        return self.dealer.receive()[0]


@pytest.fixture
def desk(places: Path) -> Iterator[Desk]:
    endpoint = f"ipc://{places}/s"
    (places / "run").mkdir()
    router = RouterSocket(endpoint)
    dealer = DealerSocket(endpoint, WORKER.encode())
    dealer.send([b"here"])
    while not router.receive():
        pass
    gateway, ends, kept = Gateway(router, Epoch(3)), list[None](), list[do.Remember]()
    tree = ProcessTree(Spec(models={}), lambda _: None)
    jobs = JobDesk(lambda _: None, lambda: None)
    orders = Orders(gateway, tree, jobs, lambda: ends.append(None), kept.append)
    yield Desk(orders, gateway, dealer, ends, kept)
    end_actors()
    dealer.close()
    router.close()
    context.destroy()


def fields(record: logging.LogRecord) -> dict[str, Any]:
    told = vars(record)["qmsup_fields"]
    return {key: value for key, value in told.items() if value is not None}


@pytest.mark.parametrize(
    ("kind", "message", "event"),
    [
        (do.Refuse, listening.Refused, "request.refused"),
        (do.Cut, listening.CutOff, "request.cut"),
    ],
)
def test_a_no_reaches_the_worker_and_the_log(
    desk: Desk, caplog: pytest.LogCaptureFixture, kind: type, message: type, event: str
) -> None:
    caplog.set_level("INFO", "qmsup")

    desk.orders.carry_out(kind(cause=CAUSE, request=R, listener=WORKER, refusal=NO))

    assert isinstance(codec.decode_from_scheduler(desk.next_frame()), message)
    assert caplog.records == [], "nobody waits for a line of the log"
    desk.orders.write_log()
    (record,) = caplog.records
    assert record.message == event
    assert fields(record) == {"request": "q-1", "code": "model_unloaded", "cause": 7}


def test_places_are_told_without_a_word_in_the_log(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "qmsup")

    desk.orders.carry_out(do.LineMoved(cause=CAUSE, listener=WORKER, places=((R, 2),)))

    assert codec.decode_from_scheduler(desk.next_frame()) == listening.Moved(places=((R, 2),))
    desk.orders.write_log()
    assert caplog.records == []


def test_an_answer_reaches_who_asked(desk: Desk) -> None:
    question = controlling.Question(v=controlling.VERSION, id="one", verb="load", args={})
    asked = desk.gateway.read(WORKER.encode(), codec.encode_question(question))
    assert isinstance(asked, Asked)

    desk.orders.carry_out(do.Answer(cause=CAUSE, ask=asked.ask, text="ready"))

    assert codec.decode_reply(desk.next_frame()).body == {"text": "ready"}


def test_a_decision_is_one_line_of_the_log(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "qmsup")
    evicts = (ModelId("a"), ModelId("b"))

    desk.orders.carry_out(
        do.Record(cause=CAUSE, decision="swap.started", model=ModelId("c"), evicts=evicts)
    )
    desk.orders.write_log()

    (record,) = caplog.records
    assert record.message == "swap.started"
    assert fields(record) == {"model": "c", "evicts": "a,b", "cause": 7}


def test_what_was_measured_is_passed_on(desk: Desk) -> None:
    measured = do.Remember(
        cause=CAUSE,
        model=ModelId("c"),
        argv=("child",),
        peak=MiB(700),
        ram=MiB(30),
        seen_by=SeenBy.LOAD_LOG,
    )

    desk.orders.carry_out(measured)

    assert desk.remembered == [measured]


def test_the_end_is_passed_on_and_a_wake_is_not_its_business(desk: Desk) -> None:
    desk.orders.carry_out(do.ArmWake(cause=CAUSE, at=Seconds(5.0)))
    assert desk.ends == []

    desk.orders.carry_out(do.EndProcess(cause=CAUSE))

    assert desk.ends == [None]
