"""A mirror of a real scheduler's state."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qmsup import places as where
from qmsup.control.feed import Mirror
from qmsup.errors import SchedulerUnavailableError
from qmsup.units import Seconds
from qmsup.wire.feed import Item
from tests.support.scheduler_actor import (
    PATIENCE,
    QUICK,
    RunningScheduler,
    models_of,
    scheduler_of,
)


@pytest.fixture
def running(places: Path) -> Iterator[RunningScheduler]:
    with scheduler_of(models_of(QUICK), places) as scheduler:
        yield scheduler


def _until(mirror: Mirror, wanted: Callable[[], bool]) -> list[Item]:
    deadline = time.monotonic() + PATIENCE
    seen: list[Item] = []
    while not wanted():
        assert time.monotonic() < deadline, mirror.state
        seen += mirror.updates(Seconds(0.2))
    return seen


def test_it_has_the_state_from_the_start_and_follows_it(running: RunningScheduler) -> None:
    with Mirror(("model.", "decision.")) as mirror:
        assert mirror.state["model.m"]["state"] == "stopped"

        running.worker().takes_up("r-1")
        seen = _until(mirror, lambda: mirror.state["model.m"]["state"] == "ready")

        assert set(mirror.state) == {"model.m"}
        assert any(item.topic == "decision.swap.started" for item in seen)
        assert mirror.asked == 1


def test_what_was_decided_before_is_there(running: RunningScheduler) -> None:
    running.worker().takes_up("r-1")
    with Mirror() as mirror:
        assert [d["decision"] for d in mirror.decisions if d["model"] == "m"]


def test_a_message_that_got_lost_has_the_state_asked_for_again(running: RunningScheduler) -> None:
    with Mirror(("model.",)) as mirror:
        mirror._seq["model"] = mirror._seq.get("model", 0) - 5

        running.worker().takes_up("r-1")
        _until(mirror, lambda: mirror.state["model.m"]["state"] == "ready")

        assert mirror.asked == 2


def test_nobody_there_is_said_at_once(places: Path) -> None:
    where.runtime_dir().mkdir(exist_ok=True)
    with pytest.raises(SchedulerUnavailableError):
        Mirror()
