"""What a greeting costs the scheduler: by what it tells, and little; counted in calls, not in seconds."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

from qmsup.actors.gateway import Gateway
from qmsup.actors.journal_lines import LineWriter
from qmsup.actors.turn_log import MOST
from qmsup.actors.worker_messages import Greeted
from qmsup.core.scheduling.scheduler import Scheduler
from qmsup.core.scheduling.stories import Turn
from qmsup.ids import Epoch, Incarnation, ListenerName, ModelId, RequestId, WorkerId
from qmsup.transport import context
from qmsup.transport.router import RouterSocket
from qmsup.units import Seconds
from qmsup.wire import codec, listening
from tests.support.scheduler_actor import (
    FIRST_INCARNATION,
    QUICK,
    ControlPeer,
    RunningScheduler,
    becomes,
    models_of,
)

W = WorkerId("main-7-x")
CALLS_A_REQUEST = 60
"""Of Python and of C together, from the frame to the line of the journal."""


def holding(number: int, incarnation: int) -> listening.Holding:
    return listening.Holding(
        request=RequestId(f"r{number}"),
        model=ModelId("m"),
        incarnation=Incarnation(incarnation),
        conversation=f"c{number}",
    )


def waiting(number: int, _: int) -> listening.Waiting:
    return listening.Waiting(
        request=RequestId(f"r{number}"), model=ModelId("m"), conversation=f"c{number}"
    )


def hello(
    *, leases: tuple[listening.Holding, ...] = (), waits: tuple[listening.Waiting, ...] = ()
) -> bytes:
    return codec.encode(
        listening.Hello(
            version=listening.VERSION,
            worker=W,
            listener=ListenerName("main"),
            pid=7,
            leases=leases,
            waiting=waits,
        )
    )


def calls_of(work: Callable[[], object]) -> int:
    count = 0

    def note(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("kind", ["of a former life", "of a child that never was", "waiting"])
def test_each_request_that_a_greeting_tells_of_costs_the_same_few_calls(
    kind: str, places: Path
) -> None:
    (places / "run").mkdir()
    router = RouterSocket(f"ipc://{places}/run/s")
    gateway, lines = Gateway(router, Epoch(3)), LineWriter(b"salt")
    incarnation = 1 if kind == "of a former life" else FIRST_INCARNATION + 99

    def greet(number: int) -> None:
        core = Scheduler(models_of(QUICK), FIRST_INCARNATION)
        if kind == "waiting":
            frame = hello(waits=tuple(waiting(n, 0) for n in range(number)))
        else:
            frame = hello(leases=tuple(holding(n, incarnation) for n in range(number)))
        for _ in range(2):  # it may come again
            greeted = gateway.read(W.encode(), frame)
            assert isinstance(greeted, Greeted)
            effects = core.handle(greeted.event, Seconds(1.0))
            lines.turn(Turn(core.state.event, Seconds(1.0), greeted.event, effects))

    greet(1)
    few, many = calls_of(lambda: greet(100)), calls_of(lambda: greet(2000))

    assert (many - few) / 1900 < 2 * CALLS_A_REQUEST
    assert many < few * 20 * 1.2
    router.close()
    context.destroy()


def test_a_greeting_of_thousands_fills_no_log(
    running: RunningScheduler, client: ControlPeer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "qmsup.decision")
    worker = running.worker(W, greets=False)

    worker.greet(leases=tuple(holding(n, 1) for n in range(3000)))

    becomes(lambda: client.worker(W).get("held"), 3000)
    assert len(caplog.records) < MOST + 100
    assert "decisions.left_out" in caplog.messages


def test_a_greeting_tells_of_so_many_requests_and_no_more(
    running: RunningScheduler, client: ControlPeer
) -> None:
    worker = running.worker(W, greets=False)
    one = holding(1, 1)

    worker.say_bytes(hello(leases=(one,) * (listening.MOST_TOLD + 1)))

    refused = worker.hears(listening.Unwelcome)
    assert not refused.greet
    assert "20000" in refused.reason
    assert client.body("status")["listeners"] == []
