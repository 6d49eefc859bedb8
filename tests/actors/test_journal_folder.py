"""Segments on a real disk: bounded, torn, full."""

import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmsup import places as where
from qmsup.actors.journal_folder import JournalFolder, lines_in


def names(folder: Path) -> list[str]:
    return [path.name for path in where.journal_segments(folder)]


def test_lines_come_back_in_order_over_segments_and_lives(tmp_path: Path) -> None:
    first = JournalFolder(tmp_path, segment=8, segments=9)
    for line in (b"one\n", b"two\n", b"three\n"):
        first.append(line)
    first.close()
    second = JournalFolder(tmp_path, segment=8, segments=9)
    second.append(b"four\n")
    second.close()

    assert [*lines_in(tmp_path)] == [b"one\n", b"two\n", b"three\n", b"four\n"]
    assert names(tmp_path) == ["00000001.jsonl", "00000002.jsonl"]


@pytest.mark.parametrize("segments", [1, 2, 3])
def test_the_oldest_segments_go_first(tmp_path: Path, segments: int) -> None:
    folder = JournalFolder(tmp_path, segment=4, segments=segments)
    for n in range(10):
        folder.append(b"%d..\n" % n)
    folder.close()

    assert len(names(tmp_path)) == segments
    assert [*lines_in(tmp_path)][-1] == b"9..\n"
    assert next(lines_in(tmp_path)) == b"%d..\n" % (10 - segments)


def test_what_follows_a_torn_line_is_whole(tmp_path: Path) -> None:
    (tmp_path / "00000007.jsonl").write_bytes(b"whole\nto")
    folder = JournalFolder(tmp_path)
    folder.append(b"next\n")
    folder.close()

    assert [*lines_in(tmp_path)] == [b"whole\n", b"to\n", b"next\n"]


def test_a_folder_that_was_removed_is_made_again(tmp_path: Path) -> None:
    journal = JournalFolder(tmp_path / "journal")
    journal.append(b"one\n")
    shutil.rmtree(tmp_path / "journal")

    journal.append(b"two\n")
    journal.close()

    assert [*lines_in(tmp_path / "journal")] == [b"two\n"]


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text("mine")
    folder = JournalFolder(tmp_path, segment=1, segments=1)
    folder.append(b"a\n")
    folder.append(b"b\n")
    folder.close()
    folder.close()

    assert (tmp_path / "notes.jsonl").read_text() == "mine"
    assert [*lines_in(tmp_path)] == [b"b\n"]


def test_the_folder_is_its_owner_s_alone(tmp_path: Path) -> None:
    folder = JournalFolder(tmp_path / "journal")
    folder.append(b"a\n")
    folder.close()

    assert (tmp_path / "journal").stat().st_mode & 0o077 == 0


@pytest.fixture
def no_room() -> Iterator[None]:
    """Files of this process may grow to ten bytes; past that, writing fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_without_room_is_an_error_and_leaves_a_torn_line(
    tmp_path: Path, no_room: None
) -> None:
    folder = JournalFolder(tmp_path)
    folder.append(b"12345\n")

    with pytest.raises(OSError, match="large"):
        folder.append(b"67890 and more\n")
    folder.close()

    assert (tmp_path / "00000001.jsonl").read_bytes() == b"12345\n6789"
