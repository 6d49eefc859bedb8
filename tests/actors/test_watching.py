"""The scheduler actor's side of the telemetry."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from qmsup.actors import watching as watching_module
from qmsup.actors.sightings import MemorySeen
from qmsup.actors.tree import end_actors
from qmsup.actors.watching import Watching
from qmsup.core.scheduling.effects import ReadMemory
from qmsup.core.scheduling.events import ProcessFailed, ProcessStarting, Woke
from qmsup.core.scheduling.memory_events import CeilingChanged
from qmsup.core.vram import cadence
from qmsup.core.vram.sample import Sample
from qmsup.ids import Incarnation, ModelId
from qmsup.units import MiB, Seconds
from tests.support.children import wait_until
from tests.support.memory import ScriptedReader, Told, sample_of
from tests.support.scheduling import Desk, spec_of


@pytest.fixture(autouse=True)
def ended(places: Path) -> Iterator[None]:
    yield
    end_actors()


def test_without_a_reader_nothing_is_read_and_that_is_said() -> None:
    desk = Desk(spec_of("a"))
    watching = Watching(None, Told())
    watching.tell(desk.scheduler.state)

    assert watching.shown(Seconds(0.0)).because == "no memory is read here"


def test_who_is_there_is_told_once_for_each_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cadence, "OFTEN", Seconds(0.02))
    desk, reader, told = Desk(spec_of("a")), ScriptedReader(), Told()
    watching = Watching(lambda: reader, told)
    state = desk.scheduler.state
    watching.tell(state)
    told.waits_for(MemorySeen, lambda seen: seen.reading.is_trusted)

    desk.say("load x a")
    watching.stir()
    watching.tell(state)
    watching.heard(
        ProcessStarting(model=ModelId("a"), incarnation=Incarnation(1), pid=2**30, port=1)
    )
    watching.heard(Woke())
    desk.say("a1 starting")
    watching.tell(state)
    watching.tell(state)
    desk.say("a1 ready")
    watching.stir()
    watching.tell(state)

    seen = told.waits_for(MemorySeen, lambda seen: not seen.reading.is_trusted)
    assert seen.reading.because == "not seen on any card: child 1"
    watching.heard(ProcessFailed(model=ModelId("a"), incarnation=Incarnation(1), reason="died"))
    desk.say("a1 fails")
    watching.tell(state)
    told.all.clear()
    told.waits_for(MemorySeen, lambda seen: seen.reading.is_trusted)


@pytest.mark.parametrize("why", ["it takes long", "the memory is wanted"])
def test_a_process_that_is_about_to_be_started_is_not_always_waited_for(
    monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    monkeypatch.setattr(cadence, "OFTEN", Seconds(0.02))
    monkeypatch.setattr(cadence, "SETTLED_AFTER", Seconds(0.0))
    within = 0.0 if why == "it takes long" else 60.0
    monkeypatch.setattr(watching_module, "_SPAWNS_WITHIN", Seconds(within))
    desk, reader, told = Desk(spec_of("a")), ScriptedReader(), Told()
    watching, state = Watching(lambda: reader, told), desk.scheduler.state
    watching.tell(state)
    told.waits_for(MemorySeen)

    desk.say("load x a")
    watching.stir()
    watching.tell(state)
    if why == "the memory is wanted":
        watching.ordered(ReadMemory(cause=state.event))
        watching.tell(state)

    wait_until(lambda: len(reader.reads) > 4)  # as often as while a child starts


def test_somebody_who_looks_has_readings_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cadence, "NOW_AND_THEN", Seconds(0.02))
    monkeypatch.setattr(cadence, "SETTLED_AFTER", Seconds(0.0))
    monkeypatch.setattr(cadence, "RESTLESS_FOR", Seconds(0.0))
    desk, reader, told = Desk(spec_of("a")), ScriptedReader(), Told()
    watching = Watching(lambda: reader, told)
    watching.tell(desk.scheduler.state)
    told.waits_for(MemorySeen)
    assert len(reader.reads) == 1

    for now in (0.0, 1.0, 30.0):
        assert watching.shown(Seconds(now)) == watching.reading

    wait_until(lambda: len(reader.reads) > 3)


def is_started(watching: Watching, desk: Desk) -> bool:
    """Whether there is one now, or was until a moment ago."""
    watching.tell(desk.scheduler.state)
    return watching.due is None


def test_one_that_breaks_is_started_anew_and_still_knows_a_game_for_what_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watching_module, "_FIRST_PAUSE", Seconds(0.01))
    desk, reader, told = Desk(spec_of("a", vram_budget=MiB(24000))), ScriptedReader(), Told()
    watching, state = Watching(lambda: reader, told), desk.scheduler.state
    watching.tell(state)
    told.waits_for(CeilingChanged, lambda event: event.ceiling == 24000)

    told.all.clear()
    reader.says = cast("Sample", "a fault of ours")
    watching.ordered(ReadMemory(cause=state.event))
    watching.tell(state)
    told.waits_for(CeilingChanged, lambda event: event.free is None)
    told.waits_for(MemorySeen, lambda seen: "started anew" in seen.reading.because)
    reader.says = sample_of(9500)
    watching.tell(state)
    assert watching.due is not None
    wait_until(lambda: is_started(watching, desk))

    assert told.waits_for(CeilingChanged, lambda event: event.free == 14500).ceiling == 14976
    said = [record.message for record in caplog.records]
    assert said.count("telemetry.broke") == said.count("telemetry.starts_anew") == 1


def test_one_that_breaks_each_time_is_started_less_and_less_often(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watching_module, "_FIRST_PAUSE", Seconds(0.01))
    monkeypatch.setattr(watching_module, "_LONGEST_PAUSE", Seconds(0.02))
    desk = Desk(spec_of("a"))
    reader = ScriptedReader(says=cast("Sample", "a fault of ours"))
    watching = Watching(lambda: reader, Told())

    def pauses() -> list[object]:
        watching.tell(desk.scheduler.state)
        return [
            vars(record)["qmsup_fields"]["after_s"]
            for record in caplog.records
            if record.message == "telemetry.starts_anew"
        ]

    wait_until(lambda: len(pauses()) > 3)
    assert pauses()[:4] == [0.01, 0.02, 0.02, 0.02]


def test_one_that_did_well_is_started_anew_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching_module, "_FIRST_PAUSE", Seconds(0.01))
    monkeypatch.setattr(watching_module, "_DOES_WELL", Seconds(0.0))
    desk = Desk(spec_of("a"))
    reader = ScriptedReader(says=cast("Sample", "a fault of ours"))
    watching = Watching(lambda: reader, Told())

    for _ in range(3):
        wait_until(lambda: not is_started(watching, desk))
        assert watching._pause == 0.02
        wait_until(lambda: is_started(watching, desk))


def test_a_telemetry_that_has_ended_is_told_nothing() -> None:
    desk = Desk(spec_of("a"))
    watching = Watching(ScriptedReader, Told())
    watching.tell(desk.scheduler.state)
    end_actors()
    desk.say("load x a")
    watching.stir()

    watching.tell(desk.scheduler.state)
