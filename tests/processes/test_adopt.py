"""Children of a dead scheduler, taken over by proof."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from qmsup.processes import records, stop
from qmsup.processes.adopt import adopt
from qmsup.processes.child import Child, Exit
from qmsup.processes.records import Record
from qmsup.units import Seconds
from tests.support.children import is_alive, running, wait_until


@contextmanager
def orphan() -> Iterator[Record]:
    """The record of a child whose scheduler is dead."""
    with running("sleep", "60") as child:
        record = replace(child.record, owner=2**22 + 1, owner_ticks=1, log_start=7)
        records.write(record)
        yield record


def close(child: Child) -> None:
    child.let_go()


def test_a_living_child_is_taken_over_and_has_a_new_owner(places: Path) -> None:
    with orphan() as record:
        child = adopt(record)

        assert child is not None
        assert (child.pid, child.log_start) == (record.pid, 7)
        assert child.exit() is None
        [kept] = records.read_all()
        assert kept.owner == os.getpid()
        assert kept.owner_is_alive
        close(child)


@pytest.mark.parametrize(
    "wrong",
    [
        {"start_ticks": 1},
        {"nonce": "another" * 5},
        {"boot": "another"},
        {"pid": 2**22 + 5},
        {"pid": 0, "start_ticks": 0},
    ],
    ids=str,
)
def test_what_is_not_proved_is_not_taken_over(wrong: dict[str, object], places: Path) -> None:
    with orphan() as record:
        assert adopt(replace(record, **wrong)) is None  # type: ignore[arg-type]
        assert is_alive(record.pid)


def test_one_that_has_ended_is_not_taken_over(places: Path) -> None:
    with orphan() as record:
        os.kill(record.pid, signal.SIGKILL)
        os.waitid(os.P_PID, record.pid, os.WEXITED | os.WNOWAIT)

        assert adopt(record) is None


def test_its_end_is_seen_though_not_how(places: Path) -> None:
    with orphan() as record:
        child = adopt(record)
        assert child is not None

        os.kill(record.pid, signal.SIGKILL)
        wait_until(lambda: child.exit() is not None)

        assert child.exit() == Exit()
        stop.bury(child)
        assert list(records.read_all()) == []


def test_it_is_stopped_like_any_other(places: Path) -> None:
    with orphan() as record:
        child = adopt(record)
        assert child is not None

        stop.terminate(child)
        assert stop.end(child, grace=Seconds(5.0))

        assert not is_alive(record.pid)
