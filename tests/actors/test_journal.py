"""The journal in memory: what is noted is found again, and is handed to the disk by and by."""

import pytest

from qmsup.actors import journal as journal_module
from qmsup.actors.journal import Journal
from qmsup.actors.journal_lines import LineWriter, read
from qmsup.actors.replay import lives_in
from qmsup.core.scheduling.effects import Record
from qmsup.core.scheduling.events import ProcessFailed
from qmsup.core.scheduling.stories import Turn
from qmsup.ids import Incarnation, ModelId
from qmsup.units import Seconds
from tests.support.journals import Session, header_of


class Disk:
    """Takes what is written, as bytes."""

    def __init__(self) -> None:
        self.text = b""

    def write(self, lines: bytes) -> None:
        self.text += lines

    @property
    def lines(self) -> list[bytes]:
        assert self.text.endswith(b"\n")
        return self.text.splitlines()


def due(journal: Journal) -> Seconds | None:
    return journal.due


def test_a_turn_is_noted_at_once_and_written_half_a_second_later() -> None:
    disk = Disk()
    journal = Journal(header_of(), write=disk.write)
    assert due(journal) is None
    session = Session(journal.note)
    session.say("at 10", "r1 asks a", "at 10.2", "a1 ready")
    assert due(journal) == 10.5

    journal.work(Seconds(10.4))
    assert len(disk.lines) == 1, "the header alone"
    journal.work(Seconds(10.5))

    assert len(disk.lines) == 3
    assert due(journal) is None
    session.say("at 11", "r1 accepts")
    assert due(journal) == 11.5


def test_of_many_turns_only_some_wait_to_be_written() -> None:
    disk = Disk()
    journal = Journal(header_of(), write=disk.write)
    turns: list[Turn] = []
    Session(turns.append).say("r1 asks a")

    for _ in range(1024):
        journal.note(turns[0])

    assert len(disk.lines) == 1025, "and the header"
    assert due(journal) is None
    journal.note(turns[0])
    assert len(disk.lines) == 1025
    assert due(journal) is not None


def test_what_names_a_request_is_found_newest_first() -> None:
    journal = Journal(header_of(), write=Disk().write)
    session = Session(journal.note)
    session.say("r1 asks a", "r11 asks a", "a1 ready", "r1 accepts", "r11 accepts", "r1 ends")

    numbers = [dated.turn.number for dated in journal.naming("r1")]

    assert numbers == [6, 4, 3, 1]
    assert [d.turn.number for d in journal.naming("r11")] == [5, 3, 2]
    assert [*journal.naming("r9")] == []


def test_what_else_must_be_said_narrows_it() -> None:
    journal = Journal(header_of(), write=Disk().write)
    Session(journal.note).say("r1 asks a", "a1 ready", "r1 accepts", "r1 ends")

    decided = [*journal.naming("a", saying=b'"Record"')]

    assert [dated.turn.number for dated in decided] == [2, 1]
    assert all(any(isinstance(e, Record) for e in dated.turn.effects) for dated in decided)


def test_memory_is_bounded_and_the_oldest_is_forgotten() -> None:
    journal = Journal(header_of(), write=Disk().write, most=3)
    Session(journal.note).say("r1 asks a", "a1 ready", "r1 accepts", "r2 asks a", "r1 ends")

    assert [dated.turn.number for dated in journal.naming("r1")] == [5, 3]
    begins = journal.begins()
    assert begins is not None
    assert begins.turn.number == 3
    assert begins.life.epoch == 1, "though the header is out of memory"


def test_long_lines_push_out_more_of_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(header_of(), write=Disk().write)
    monkeypatch.setattr(journal_module, "_MOST_BYTES", 2000)
    Session(journal.note).say("r1 asks a", "a1 ready", "r1 accepts")
    Session(journal.note).say(*(f"{'x' * 300}{n} asks a" for n in range(8)))

    assert sum(map(len, journal._lines)) <= 2000
    begins = journal.begins()
    assert begins is not None
    assert begins.life.epoch == 1, "though the header is out of memory"


def test_former_lives_are_known_with_their_own_time() -> None:
    disk = Disk()
    first = Journal(header_of(epoch=1), write=disk.write)
    Session(first.note).say("at 5", "r1 asks a")
    first.flush()
    second = Journal(header_of(epoch=2), write=disk.write, former=disk.lines)
    Session(second.note).say("at 7", "r1 asks b")

    new, old = second.naming("r1")

    assert (new.life.epoch, old.life.epoch) == (2, 1)
    assert (new.time - new.life.started, old.time - old.life.started) == (7, 5)


def test_turns_of_a_life_without_a_beginning_are_passed_over() -> None:
    turns: list[Turn] = []
    Session(turns.append).say("r1 asks a", "r2 asks a")
    former = [LineWriter(b"").turn(turn) for turn in turns]

    journal = Journal(header_of(), write=Disk().write, former=[*former, b'{"journal":1}', *former])

    assert [*journal.naming("r1")] == [], "nobody could tell when that was"
    assert journal.begins() is None


def test_what_is_on_disk_is_what_was_noted() -> None:
    disk = Disk()
    turns: list[Turn] = []
    journal = Journal(header_of(), write=disk.write)
    Session(turns.append).be_busy(2)
    for turn in turns:
        journal.note(turn)
    journal.flush()

    back = [line for line in map(read, disk.lines[1:]) if isinstance(line, Turn)]

    assert [line.number for line in back] == [turn.number for turn in turns]


def test_what_cannot_be_written_leaves_a_gap_and_no_trouble() -> None:
    disk = Disk()
    journal = Journal(header_of(), write=disk.write)
    session = Session(journal.note)
    session.say("r1 asks a")
    session.tell(
        ProcessFailed(model=ModelId("a"), incarnation=Incarnation(1), reason="no file \udcff")
    )
    session.say("r2 asks b")
    journal.flush()

    (life,) = lives_in(disk.lines)

    assert life.gap == "1 of its lines cannot be read"
    assert [turn.number for turn in life.turns] == [1, 3]
