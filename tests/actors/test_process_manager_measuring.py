"""What a child's load log says of its memory is told once it is ready."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pykka
import pytest

from qmsup.actors.process_manager import ProcessManager
from qmsup.core.scheduling.effects import EnsureReady, Stop
from qmsup.core.scheduling.events import ProcessReady, ProcessStopped
from qmsup.core.scheduling.memory_events import FootprintMeasured, SeenBy
from qmsup.ids import EventNumber, Incarnation, ModelId
from qmsup.processes.ports import PortPool
from qmsup.spec import ModelSpec
from qmsup.units import MiB, Seconds
from tests.support.children import FIRST_PORT, Reports, fake_spec, wait_until
from tests.support.models import llama_server, tiny_model

M = ModelId("m")
ON_CARDS = (
    *("--load-log", "load_tensors:        CUDA0 model buffer size =   700.25 MiB"),
    *("--load-log", "load_tensors:   CPU_Mapped model buffer size =    60.00 MiB"),
    *("--load-log", "sched_reserve:      CUDA1 compute buffer size =    40.00 MiB"),
)
Run = Callable[[ModelSpec], pykka.ActorRef[ProcessManager]]


@pytest.fixture
def reports() -> Reports:
    return Reports()


@pytest.fixture
def run(places: Path, reports: Reports) -> Iterator[Run]:
    refs: list[pykka.ActorRef[ProcessManager]] = []

    def start(spec: ModelSpec) -> pykka.ActorRef[ProcessManager]:
        ref = ProcessManager.start(spec=spec, report=reports, ports=PortPool(FIRST_PORT))
        refs.append(ref)
        ref.tell(EnsureReady(cause=EventNumber(1), model=M, incarnation=Incarnation(1)))
        reports.wait_for(ProcessReady, 1)
        return ref

    yield start
    for ref in refs:
        ref.stop()


def measured(reports: Reports) -> list[FootprintMeasured]:
    return [event for event in reports.events if isinstance(event, FootprintMeasured)]


def test_one_that_is_stopped_at_once_is_measured_all_the_same(run: Run, reports: Reports) -> None:
    ref = run(fake_spec(*ON_CARDS))

    ref.tell(Stop(cause=EventNumber(2), model=M, incarnation=Incarnation(1)))
    reports.wait_for(ProcessStopped, 1)

    kinds = [type(event) for event in reports.events]
    assert kinds.index(FootprintMeasured) < kinds.index(ProcessStopped)


def test_what_the_log_says_is_told_of_this_start(run: Run, reports: Reports) -> None:
    spec = fake_spec(*ON_CARDS)

    run(spec)

    wait_until(lambda: bool(measured(reports)))
    assert measured(reports) == [
        FootprintMeasured(
            model=M,
            argv=spec.argv,
            peak=MiB(741),
            incarnation=Incarnation(1),
            ram=MiB(60),
            seen_by=SeenBy.LOAD_LOG,
        )
    ]


def test_a_silent_log_tells_nothing_and_an_earlier_start_is_not_read(
    run: Run, reports: Reports
) -> None:
    owner = run(fake_spec(*ON_CARDS))
    owner.tell(Stop(cause=EventNumber(1), model=M, incarnation=Incarnation(1)))
    reports.wait_for(ProcessStopped, 1)
    owner.stop()
    reports.events.clear()

    owner = run(fake_spec())
    owner.tell(Stop(cause=EventNumber(1), model=M, incarnation=Incarnation(1)))
    reports.wait_for(ProcessStopped, 1)

    assert measured(reports) == []


def test_the_real_llama_server_says_what_it_takes_of_the_boxs_memory(
    run: Run, reports: Reports
) -> None:
    argv = (str(llama_server()), "-m", str(tiny_model("alpha", layers=4)), "-c", "2048")
    spec = ModelSpec(id=M, argv=(*argv, "-ngl", "0", "-lv", "4"), start_timeout=Seconds(20.0))

    run(replace(spec, slots=2))

    wait_until(lambda: bool(measured(reports)))
    [figures] = measured(reports)
    assert figures.peak == 0
    assert 2 < figures.ram < 100
