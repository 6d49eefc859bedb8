"""The scheduler actor's side of the telemetry."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from qmsup.actors.sightings import MemorySeen
from qmsup.actors.tree import end_actors
from qmsup.actors.watching import Watching
from qmsup.core.scheduling.events import ProcessFailed, ProcessStarting, Woke
from qmsup.core.vram import cadence
from qmsup.ids import Incarnation, ModelId
from qmsup.units import Seconds
from tests.support.children import wait_until
from tests.support.memory import ScriptedReader, Told
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


def test_a_telemetry_that_has_ended_is_told_nothing() -> None:
    desk = Desk(spec_of("a"))
    watching = Watching(ScriptedReader, Told())
    watching.tell(desk.scheduler.state)
    end_actors()
    desk.say("load x a")
    watching.stir()

    watching.tell(desk.scheduler.state)
