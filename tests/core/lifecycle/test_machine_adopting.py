"""A child of a former scheduler goes on: it is ready from the start, and all else is as ever."""

import pytest

from qmsup.core.lifecycle.effects import (
    EndProbe,
    LookAtWork,
    ReportFailed,
    ReportReady,
    ReportStopped,
    SeeRest,
    StartProbe,
    Terminate,
)
from qmsup.core.lifecycle.events import (
    Adopted,
    Exited,
    Gone,
    Spawned,
    TimePassed,
    Unwanted,
    Wanted,
)
from qmsup.core.lifecycle.liveness import ASK_EVERY
from qmsup.core.lifecycle.machine import Lifecycle
from qmsup.core.lifecycle.phase import Phase
from qmsup.core.lifecycle.timers import Limits
from qmsup.ids import Incarnation
from qmsup.units import Seconds

SEVEN = Incarnation(7)
NOW = Seconds(100.0)


def adopted(*, can_be_asked: bool = True, can_be_watched: bool = True) -> Lifecycle:
    life = Lifecycle(Limits(start_timeout=Seconds(120), stop_grace=Seconds(10)))
    spawned = Spawned(can_be_asked=can_be_asked, can_be_watched=can_be_watched)
    assert life.handle(Adopted(incarnation=SEVEN, spawned=spawned), NOW) == []
    return life


def test_it_is_ready_and_asked_now_and_then() -> None:
    life = adopted()

    assert (life.phase, life.incarnation) == (Phase.READY, SEVEN)
    assert life.wake_at == NOW + ASK_EVERY
    assert life.handle(TimePassed(), Seconds(NOW + ASK_EVERY)) == [StartProbe()]


def test_it_is_ready_for_who_wants_it() -> None:
    assert adopted().handle(Wanted(incarnation=SEVEN), NOW) == [ReportReady(incarnation=SEVEN)]


def test_it_stops_when_told() -> None:
    life = adopted()

    assert life.handle(Unwanted(incarnation=SEVEN), NOW) == [EndProbe(), Terminate()]
    ended = Exited(how="ended (its exit code is not known)")
    assert life.handle(ended, NOW) == [EndProbe(), SeeRest()]
    assert life.handle(Gone(), NOW) == [ReportStopped(incarnation=SEVEN)]


def test_its_end_is_a_failure_like_any_other() -> None:
    life = adopted()

    life.handle(Exited(how="ended (its exit code is not known)"), NOW)

    [report] = life.handle(Gone(), NOW)
    assert isinstance(report, ReportFailed)
    assert "while ready" in report.reason


@pytest.mark.parametrize("can_be_watched", [True, False])
def test_one_that_cannot_be_asked_is_watched_where_that_can_be(*, can_be_watched: bool) -> None:
    life = adopted(can_be_asked=False, can_be_watched=can_be_watched)

    if can_be_watched:
        assert life.handle(TimePassed(), Seconds(NOW + ASK_EVERY)) == [LookAtWork()]
    else:
        assert life.wake_at is None
