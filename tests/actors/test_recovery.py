"""What a former scheduler left, in the core's words; the whole of it is shown in tests/daemon and tests/system."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from qmsup.actors.inbox import PollingInbox
from qmsup.actors.recovery import recovered
from qmsup.actors.standing import Former, LivingWorker
from qmsup.actors.workers import Workers
from qmsup.core.scheduling.inheritance import AdoptedChild, Recovered
from qmsup.ids import Incarnation, ModelId, WorkerId
from qmsup.processes.child import Child
from qmsup.processes.records import digest_of
from qmsup.spec import ModelSpec, Spec
from qmsup.units import MiB, Seconds
from tests.support.children import running

M = ModelSpec(id=ModelId("m"), argv=("server", "--key", "secret"))
SPEC = Spec(models={M.id: M})
NOW = Seconds(5.0)
W = LivingWorker(worker=WorkerId("w1"), pid=os.getpid())
GONE = LivingWorker(worker=WorkerId("w2"), pid=2**22 + 5)
PINNED = Recovered(pins=(M.id,))


@pytest.fixture
def workers() -> Iterator[Workers]:
    inbox = PollingInbox()
    made = Workers(inbox)
    yield made
    made.close()
    inbox.close()


@pytest.fixture
def survivor(places: Path) -> Iterator[Child]:
    with running("sleep", "60") as child:
        child.record = replace(
            child.record,
            incarnation=7,
            host="127.0.0.1",
            total_slots=2,
            context=4096,
            est_vram=900,
            command=digest_of(M),
        )
        yield child


def test_where_nothing_is_left_there_is_no_event(workers: Workers) -> None:
    assert recovered(None, (), SPEC, workers, NOW) is None


def test_a_child_that_lives_on_is_told_as_it_was_started(workers: Workers, survivor: Child) -> None:
    event = recovered(None, (survivor,), SPEC, workers, NOW)

    assert event is not None
    age = event.children[0].age
    assert 0.0 <= age < 60.0
    assert event == Recovered(
        children=(
            AdoptedChild(
                model=M.id,
                incarnation=Incarnation(7),
                pid=survivor.pid,
                port=survivor.record.port,
                upstream=f"127.0.0.1:{survivor.record.port}",
                total_slots=2,
                context=4096,
                is_as_configured=True,
                est_vram=MiB(900),
                age=age,
            ),
        )
    )


def test_another_command_is_told(workers: Workers, survivor: Child) -> None:
    spec = Spec(models={M.id: replace(M, argv=("server",))})
    survivor.record = replace(survivor.record, host="::1")

    event = recovered(None, (survivor,), spec, workers, NOW)

    assert event is not None
    assert not event.children[0].is_as_configured
    assert event.children[0].upstream == f"[::1]:{survivor.record.port}"


def test_workers_matter_where_a_child_lives_on_and_only_those_that_do(
    workers: Workers, survivor: Child
) -> None:
    former = Former(workers=(W, GONE), event=PINNED)

    alone = recovered(former, (), SPEC, workers, NOW)
    assert alone == PINNED
    beside = recovered(former, (survivor,), SPEC, workers, NOW)

    assert beside is not None
    assert (beside.workers, beside.pins) == ((W.worker,), (M.id,))
    assert not workers.hear(W.worker, NOW), "it is to greet first"
