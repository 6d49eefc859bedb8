"""The telemetry actor: samples become news. The reader says what the test wants; the children are real processes."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pykka
import pytest

from qmsup.actors import telemetry
from qmsup.actors.sightings import Kept, LookedAt, MemorySeen, ReadNow, Watched, WatchOnly
from qmsup.actors.telemetry import TelemetryActor
from qmsup.actors.tree import end_actors
from qmsup.core.scheduling.memory_events import (
    CeilingChanged,
    FootprintMeasured,
    MemoryRead,
    MemoryReturned,
)
from qmsup.core.vram import cadence
from qmsup.core.vram.attribution import Stage
from qmsup.core.vram.reading import Limits
from qmsup.ids import Incarnation, ModelId
from qmsup.units import MiB, Seconds
from tests.support.children import running, wait_until
from tests.support.memory import ScriptedReader, Told, sample_of

LIMITS = Limits(budget=MiB(24000), ram_budget=MiB(60000), settle=Seconds(1.0))


@dataclass(slots=True)
class Telemetry:
    """The actor, its reader, and what it told."""

    ref: pykka.ActorRef[TelemetryActor]
    reader: ScriptedReader
    told: Told = field(default_factory=Told)

    def watch(self, *children: Watched, limits: Limits = LIMITS) -> None:
        self.ref.tell(WatchOnly(children=children, limits=limits))

    def sees(self, used: int, uses: dict[int, int | None] | None = None) -> None:
        self.reader.says = sample_of(used, uses)

    def tells(self, fits: Callable[[CeilingChanged], bool]) -> CeilingChanged:
        return self.told.waits_for(CeilingChanged, fits)


@pytest.fixture
def box(places: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Telemetry]:
    for name in ("OFTEN", "SOON", "NOW_AND_THEN", "SELDOM"):
        monkeypatch.setattr(cadence, name, Seconds(0.02))
    with started(ScriptedReader()) as made:
        yield made


@contextmanager
def started(reader: ScriptedReader) -> Iterator[Telemetry]:
    told = Told()
    ref = TelemetryActor.start(open_reader=lambda: reader, report=told, kept=Kept())
    yield Telemetry(ref, reader, told)
    end_actors()
    reader.may_answer.set()


def child_of(pid: int | None, stage: Stage = Stage.READY, *, number: int = 1) -> Watched:
    return Watched(
        model=ModelId("m"),
        incarnation=Incarnation(number),
        argv=("child",),
        stage=stage,
        pid=pid,
    )


def test_a_game_lowers_the_ceiling_and_its_end_raises_it(box: Telemetry) -> None:
    box.watch()
    box.tells(lambda event: event.ceiling == 24000)

    box.sees(9500)
    tight = box.tells(lambda event: event.ceiling == 14976)
    box.told.all.clear()
    box.sees(1500)

    assert (tight.free, tight.shed_line) == (14500, 16512)
    assert box.tells(lambda event: event.ceiling == 24000).free == 22500


def test_other_limits_count_at_once(box: Telemetry) -> None:
    box.watch()
    box.tells(lambda event: event.ceiling == 24000)

    box.watch(limits=replace(LIMITS, budget=MiB(12000)))

    assert box.tells(lambda event: event.ceiling == 12000).ram_ceiling == 50000


def test_a_budget_that_the_card_has_not_is_warned_of_once(
    box: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    box.sees(1600)
    box.watch()
    box.tells(lambda event: event.free == 22400)
    box.watch(limits=replace(LIMITS, budget=MiB(20000)))
    box.tells(lambda event: event.ceiling == 20000)
    box.sees(1500)
    box.tells(lambda event: event.free == 22500)

    warnings = [r for r in caplog.records if r.message == "vram.budget_too_large"]
    assert len(warnings) == 1
    assert "lower vramBudgetGB by 1." in str(vars(warnings[0])["qmsup_fields"]["hint"])


def test_a_childs_life_from_its_load_to_the_last_of_its_memory(box: Telemetry) -> None:
    with running("sh", "-c", "sleep 60; true") as child:
        box.tells(lambda event: event.free == 22500)
        box.watch(child_of(None, Stage.STARTING))
        box.watch(child_of(child.pid, Stage.STARTING))
        box.sees(6500, {child.pid: 5000})
        assert box.tells(lambda event: 1 in event.held).held == {1: 5000}
        assert not [m for m in box.told.of(FootprintMeasured) if m.peak]

        box.watch(child_of(child.pid))
        peak = box.told.waits_for(FootprintMeasured, lambda event: event.peak == 5000)
        box.watch(child_of(child.pid, Stage.STOPPING))
    box.sees(6500)
    box.watch()
    box.tells(lambda event: not event.held)
    box.sees(2500)
    box.told.waits_for(MemoryReturned, lambda event: event.returned == 4000)
    box.sees(1500)
    back = box.told.waits_for(MemoryReturned, lambda event: event.returned == 5000)

    assert (peak.model, peak.incarnation, peak.argv) == ("m", 1, ("child",))
    assert (back.model, back.incarnation, back.free) == ("m", 1, 22500)


def test_what_a_child_uses_of_the_ram_is_told_also_without_a_gpu(box: Telemetry) -> None:
    with running("sleep", "60") as child:
        box.watch(replace(child_of(child.pid), is_on_gpu=False))

        measured = box.told.waits_for(FootprintMeasured, lambda event: event.ram > 0)
        seen = box.told.waits_for(MemorySeen, lambda told: bool(told.reading.ram))

    assert measured.peak == 0
    assert seen.reading.ram[Incarnation(1)].resident == measured.ram
    assert (seen.reading.ram_total, seen.reading.ram_ceiling) == (64000, 50000)


def test_a_program_that_a_script_starts_is_the_childs(box: Telemetry, tmp_path: Path) -> None:
    told = tmp_path / "pid"
    with running("sh", "-c", f"sleep 60 & echo $! > {told}~; mv {told}~ {told}; wait") as child:
        wait_until(told.exists)
        box.sees(6500, {int(told.read_text()): 5000})
        box.watch(child_of(child.pid))

        assert box.tells(lambda event: 1 in event.held).held == {1: 5000}
        wait_until(lambda: int(told.read_text()) in (box.reader.reads[-1] or ()))


def test_a_reader_that_fails_makes_readings_untrusted_until_it_is_back(box: Telemetry) -> None:
    box.watch()
    box.tells(lambda event: event.ceiling == 24000)
    box.sees(9500)
    box.tells(lambda event: event.ceiling == 14976)

    box.reader.says = RuntimeError("the bus is gone")
    assert box.tells(lambda event: event.free is None).ceiling is None
    box.told.all.clear()
    box.sees(9500)

    assert box.tells(lambda event: event.free is not None).ceiling == 14976


def test_no_card_is_no_trouble(box: Telemetry) -> None:
    box.reader.says = replace(sample_of(0), cards=())
    box.watch()

    why = "no GPU can be read"
    seen = box.told.waits_for(MemorySeen, lambda told: told.reading.because == why)

    assert seen.reading.ram_total == 64000


def test_a_reader_that_hangs_makes_readings_untrusted_and_nothing_else_hang(
    box: Telemetry, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(telemetry, "_HANGS_AFTER", Seconds(0.05))
    box.watch()
    box.tells(lambda event: event.ceiling == 24000)

    with caplog.at_level(logging.INFO):
        box.reader.may_answer.clear()
        box.tells(lambda event: event.free is None)
        reads = len(box.reader.reads)
        box.ref.tell(LookedAt())
        box.watch(limits=replace(LIMITS, budget=MiB(12000)))
        box.told.all.clear()
        box.reader.may_answer.set()
        box.tells(lambda event: event.ceiling == 12000)

    assert reads <= len(box.reader.reads)
    said = [record.message for record in caplog.records]
    assert said.count("telemetry.hangs") == said.count("telemetry.answers_again") == 1


def test_it_ends_though_its_reader_hangs(box: Telemetry) -> None:
    box.reader.may_answer.clear()
    wait_until(lambda: bool(box.reader.reads))

    assert end_actors()

    box.reader.may_answer.set()
    wait_until(lambda: box.reader.closed == 1)


def test_a_fault_of_ours_makes_readings_untrusted(
    box: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    box.watch()
    box.tells(lambda event: event.ceiling == 24000)

    box.ref.tell(WatchOnly(children=(None,), limits=LIMITS))  # type: ignore[arg-type] # that is the fault

    box.tells(lambda event: event.free is None)
    seen = box.told.waits_for(MemorySeen, lambda told: "broke" in told.reading.because)
    assert not seen.reading.is_trusted
    wait_until(lambda: not box.ref.is_alive())
    assert "telemetry.broke" in [record.message for record in caplog.records]


@pytest.fixture
def seldom(places: Path) -> Iterator[Telemetry]:
    """One that looks by itself every ten seconds, and has just done so."""
    with started(ScriptedReader()) as made:
        made.watch()
        made.tells(lambda event: event.ram_ceiling == 50000)  # by the limits that were just told
        made.told.all.clear()
        yield made


def test_who_asks_for_a_reading_is_told_at_once_what_is_new_and_then_that_it_was_read(
    seldom: Telemetry,
) -> None:
    seldom.sees(9500)
    seldom.ref.tell(ReadNow())

    seldom.told.waits_for(MemoryRead)

    events = [type(each) for each in seldom.told.all if not isinstance(each, MemorySeen)]
    assert events == [CeilingChanged, MemoryRead]
    assert seldom.told.of(CeilingChanged)[-1].ceiling == 14976


def test_a_read_that_was_begun_before_is_not_what_was_asked_for(seldom: Telemetry) -> None:
    seldom.reader.may_answer.clear()
    seldom.ref.tell(ReadNow())
    wait_until(lambda: len(seldom.reader.reads) == 2)

    seldom.ref.tell(ReadNow())
    seldom.reader.may_answer.set()

    wait_until(lambda: len(seldom.told.of(MemoryRead)) == 2)
    assert len(seldom.reader.reads) == 3


def test_where_nothing_can_be_read_that_is_told_instead(seldom: Telemetry) -> None:
    seldom.reader.says = RuntimeError("the bus is gone")
    seldom.ref.tell(ReadNow())

    seldom.told.waits_for(MemoryRead)

    assert seldom.told.of(CeilingChanged)[-1].free is None
