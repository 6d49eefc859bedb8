"""A scheduler at work, one worker and one control client of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from qmsup.actors import mishaps
from tests.support.scheduler_actor import (
    BROKEN,
    QUICK,
    SLOW,
    ControlPeer,
    RunningScheduler,
    WorkerPeer,
    models_of,
    scheduler_of,
)


@pytest.fixture(autouse=True)
def _nothing_has_broken_yet() -> None:
    """The ledger is one for the process; what broke in a test before is not this one's."""
    mishaps.forget()


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the scheduler check its invariants after every event."""
    monkeypatch.setenv("QMSUP_CHECK", "1")


@pytest.fixture
def running(places: Path, checked: None) -> Iterator[RunningScheduler]:
    with scheduler_of(models_of(QUICK, SLOW, BROKEN), places) as scheduler:
        yield scheduler
        assert not scheduler.broke.is_set()


@pytest.fixture
def worker(running: RunningScheduler) -> WorkerPeer:
    return running.worker()


@pytest.fixture
def client(running: RunningScheduler) -> ControlPeer:
    return running.client()
