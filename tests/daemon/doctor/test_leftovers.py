"""Children that were left behind, real ones; looking at them ends none and forgets none."""

import os
from dataclasses import replace
from pathlib import Path

from qmsup.daemon.doctor.box import Box
from qmsup.daemon.doctor.leftovers import look
from qmsup.processes import records
from qmsup.processes.records import Record
from tests.support.children import is_alive, running
from tests.support.doctoring import graded


def orphaned(record: Record) -> Record:
    """As one whose scheduler is dead."""
    return replace(record, owner=2**22 + 1, owner_ticks=1)


def test_none_is_well(places: Path) -> None:
    assert graded(look(Box())) == [("ok", "none")]


def test_a_child_whose_scheduler_is_gone_is_told_and_left_alone(places: Path) -> None:
    with running("sleep", "60") as child:
        records.write(orphaned(child.record))
        unreadable = records.children_dir() / "torn.json"
        unreadable.write_text("{")

        assert graded(look(Box())) == [("warn", f"pid {child.pid}")]
        assert [each.do.endswith(f"kill {child.pid}") for each in look(Box())] == [True]

        assert is_alive(child.pid)
        assert unreadable.exists()
        assert child.record.path.exists()


def test_one_of_a_scheduler_that_runs_is_well(places: Path) -> None:
    with running("sleep", "60") as child:
        assert graded(look(Box())) == [("ok", f"pid {child.pid}")]


def test_one_that_nothing_proves_is_told_apart(places: Path) -> None:
    with running("sleep", "60") as child:
        stranger = replace(orphaned(child.record), nonce="of another")
        records.erase(child.record)
        records.write(stranger)

        [finding, _its_own] = look(Box())

        assert (finding.grade, "nothing proves" in finding.says) == ("warn", True)
        records.erase(stranger)


def test_what_another_boot_left_is_nothing(places: Path) -> None:
    with running("sleep", "60") as child:
        records.write(replace(child.record, owner=os.getpid(), boot="another"))

        assert graded(look(Box())) == [("ok", "none")]
