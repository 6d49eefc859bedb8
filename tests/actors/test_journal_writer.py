"""The writer's thread on a real disk, and one that takes nothing."""

import logging
import threading
from functools import partial
from pathlib import Path

import pytest

from qmsup import places as where
from qmsup.actors import mishaps
from qmsup.actors.journal import JournalOnDisk, former_lines
from qmsup.actors.journal_folder import JournalFolder
from qmsup.actors.tree import end_actors


def written(disk: JournalOnDisk) -> bool:
    """Wait until what was told is dealt with; whether it was written."""
    done = threading.Event()
    disk.when_written(done.set)
    assert done.wait(10)
    return bool(disk.about()["is_written"])


def test_what_is_told_is_on_disk_when_asked_for(places: Path) -> None:
    disk = JournalOnDisk()
    disk.write(b"one\n")
    disk.write(b"two\n")

    assert written(disk)
    assert former_lines() == [b"one\n", b"two\n"]
    assert disk.about()["folder"] == str(where.journal_dir())
    end_actors()
    disk.write(b"three\n")  # to a thread that has ended: nobody minds
    assert former_lines() == [b"one\n", b"two\n"]


def test_a_disk_that_takes_nothing_is_told_of_once_and_tried_again(
    places: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "qmsup")
    where.make_private(where.state_dir())
    where.journal_dir().write_text("a file where the folder should be")
    disk = JournalOnDisk()
    for _ in range(3):
        disk.write(b"lost\n")
    assert not written(disk)
    assert [r.getMessage() for r in caplog.records].count("journal.not_written") == 1

    where.journal_dir().unlink()
    disk.write(b"kept\n")

    assert written(disk)
    assert former_lines() == [b"kept\n"]
    assert caplog.records[-1].getMessage() == "journal.written_again"
    end_actors()


def test_a_journal_that_cannot_be_read_is_as_if_there_were_none(places: Path) -> None:
    (where.journal_dir() / "00000001.jsonl").mkdir(parents=True)

    assert former_lines() == []


def test_a_disk_that_is_far_behind_is_spared(
    places: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = JournalOnDisk()
    is_slow = threading.Event()

    def be_slow() -> None:
        is_slow.wait(10)

    disk.when_written(be_slow)
    a_lot = b"x" * (5 * 1024 * 1024) + b"\n"
    for _ in range(5):
        disk.write(a_lot)
    is_slow.set()
    assert written(disk)

    assert len(former_lines()) == 2, "what came after that was too much"
    assert [r.getMessage() for r in caplog.records] == ["journal.behind"]
    disk.write(b"again\n")
    assert written(disk)
    assert former_lines()[-1] == b"again\n"
    end_actors()


def test_a_bug_costs_the_journal_the_lines_that_met_it(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mishaps.forget()
    disk = JournalOnDisk()
    disk.write(b"one\n")
    assert written(disk)
    with monkeypatch.context() as patch:
        patch.setattr(JournalFolder, "append", lambda *_: 1 / 0)
        disk.write(b"lost\n")
        assert not written(disk), "and that is said"
    disk.when_written(partial(setattr, None, "told", True))
    disk.write(b"two\n")

    assert written(disk)
    assert former_lines() == [b"one\n", b"two\n"]
    assert [(each.part, each.times) for each in mishaps.told()] == [("journal", 2)]
    assert disk._progress.handed == disk._progress.dealt_with, "so it is not taken for a slow disk"
    end_actors()
    mishaps.forget()
