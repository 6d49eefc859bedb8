from pathlib import Path

import pytest

from qmsup.actors.paperwork import Paperwork
from qmsup.errors import ChildError
from qmsup.processes import records
from qmsup.processes.records import Record
from qmsup.units import Seconds
from tests.support.children import running


def test_what_is_noted_counts_at_once_and_is_written_later(places: Path) -> None:
    paperwork = Paperwork()
    with running("sleep", "60") as child:
        paperwork.note(child, total_slots=3)
        noted = (child.record.total_slots, [r.total_slots for r in records.read_all()])
        paperwork.do()

        assert noted == (3, [None])
        assert list(records.read_all()) == [child.record]


def test_a_child_that_is_gone_leaves_no_record(places: Path) -> None:
    paperwork = Paperwork()
    with running("sleep", "60") as child:
        paperwork.note(child)
        paperwork.strike(child)
        paperwork.do()
        paperwork.do()

        assert list(records.read_all()) == []


def test_what_can_wait_is_written_along_with_what_cannot(places: Path) -> None:
    paperwork = Paperwork()
    with running("sleep", "60") as child:
        due = [paperwork.due]
        paperwork.note(child, by=Seconds(8.0), context=100)
        due.append(paperwork.due)
        paperwork.note(child, by=Seconds(9.0), total_slots=3)
        due.append(paperwork.due)
        paperwork.note(child, is_ready=True)
        due.append(paperwork.due)
        paperwork.do()

        assert due == [None, 8.0, 8.0, 0.0]
        assert paperwork.due is None
        [record] = records.read_all()
        assert (record.context, record.total_slots, record.is_ready) == (100, 3, True)


def test_a_record_that_cannot_be_written_holds_nobody_up(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(_record: Record) -> None:
        raise ChildError("no room")

    paperwork = Paperwork()
    with running("sleep", "60") as child:
        paperwork.note(child)
        monkeypatch.setattr(records, "write", no_room)

        paperwork.do()
