import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmsup import child_logs
from qmsup.child_logs import Follower, archive_of, last_lines, last_lines_if_any
from qmsup.processes.rotation import punch_hole


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "chat.log"


@pytest.fixture
def follower(log: Path) -> Iterator[Follower]:
    log.write_bytes(b"old\n")
    made = Follower(log)
    yield made
    made.close()


def append(path: Path, text: bytes) -> None:
    with path.open("ab") as file:
        file.write(text)


@given(
    st.lists(st.binary(max_size=9).filter(lambda b: not set(b) & set(b"\r\n"))), st.integers(1, 9)
)
def test_the_last_lines_are_the_last_lines(lines: list[bytes], count: int) -> None:
    with tempfile.NamedTemporaryFile() as log:
        log.write(b"".join(line + b"\n" for line in lines))
        log.flush()

        assert last_lines(Path(log.name), count) == lines[-count:]


def test_only_the_end_of_a_long_file_is_read(log: Path) -> None:
    log.write_bytes(b"".join(b"line %d\n" % n for n in range(100_000)))

    assert last_lines(log, 2) == [b"line 99998", b"line 99999"]
    assert last_lines(log, 20_000)[0] == b"line 80000"


def test_of_a_program_that_writes_no_line_end_no_more_is_read_than_of_one_that_does(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_logs, "_MOST", 8 * 1024)
    log.write_bytes(b"first\n" + b"x" * 200_000 + b"end")

    [line] = last_lines(log, 3)

    assert line.endswith(b"xend")
    assert len(line) == 3 * 4096


def test_a_line_without_an_end_counts(log: Path) -> None:
    log.write_bytes(b"whole\nhalf")

    assert last_lines(log, 2) == [b"whole", b"half"]


def test_of_a_line_that_is_drawn_over_and_over_the_last_state_is_told(log: Path) -> None:
    log.write_bytes(b"loading\r\n |=> | 1/2\r |==>| 2/2\ndone\n |=> | 1/3\r |==>| 2/3\r")

    assert last_lines(log, 9) == [b"loading", b" |==>| 2/2", b"done", b" |==>| 2/3"]
    assert last_lines(log, 0) == []


def test_who_follows_is_told_what_was_before_and_nothing_twice(log: Path) -> None:
    archive_of(log).write_bytes(b"oldest\nolder\n")
    log.write_bytes(b"old\nha")
    follower = Follower(log)
    append(log, b"lf\nnew\n")

    assert follower.last_lines(2) == [b"older", b"old"]
    assert follower.new_lines() == [b"half", b"new"]
    follower.close()


def test_what_was_before_is_told_though_its_archive_is_none(log: Path) -> None:
    archive_of(log).mkdir()
    log.write_bytes(b"old\n")
    follower = Follower(log)

    assert follower.last_lines(2) == [b"old"]
    follower.close()
    assert follower.last_lines(2) == []


def test_what_is_appended_is_seen_once(log: Path, follower: Follower) -> None:
    assert follower.new_lines() == []
    append(log, b"one\ntwo\n")

    assert follower.new_lines() == [b"one", b"two"]
    assert follower.new_lines() == []


def test_a_line_is_shown_when_it_is_whole(log: Path, follower: Follower) -> None:
    append(log, b"on")
    assert follower.new_lines() == []
    append(log, b"e\n")

    assert follower.new_lines() == [b"one"]


def test_a_rotated_file_is_read_to_its_end_and_then_its_successor(
    log: Path, follower: Follower
) -> None:
    append(log, b"last words\n")
    log.rename(log.with_suffix(".1"))
    append(log, b"first words\n")

    assert follower.new_lines() == [b"last words", b"first words"]


def test_between_a_file_and_its_successor_there_may_be_none(log: Path, follower: Follower) -> None:
    log.rename(log.with_suffix(".1"))
    assert follower.new_lines() == []
    append(log, b"back\n")

    assert follower.new_lines() == [b"back"]


def test_an_emptied_file_is_read_from_its_start(log: Path, follower: Follower) -> None:
    log.write_bytes(b"a\n")

    assert follower.new_lines() == [b"a"]


def test_a_file_may_come_later(log: Path) -> None:
    follower = Follower(log)
    assert follower.new_lines() == []
    append(log, b"hello\n")

    assert follower.new_lines() == [b"hello"]
    follower.close()
    follower.close()


def test_from_the_start_everything_is_new(log: Path) -> None:
    log.write_bytes(b"old\n")
    follower = Follower(log, from_start=True)

    assert follower.new_lines() == [b"old"]
    follower.close()


def punch(path: Path, length: int) -> None:
    """Make a hole at the start, as a rotation does."""
    with path.open("r+b") as file:
        punch_hole(file.fileno(), length)


def test_a_log_begins_after_its_hole(log: Path) -> None:
    log.write_bytes(b"gone\n" * 2000 + b"one\ntwo\n")
    punch(log, 10_000)

    with log.open("rb") as file:
        assert child_logs.first_byte(file) == 10_000
    assert last_lines(log, 9) == [b"one", b"two"]
    assert last_lines(log, 0) == []


def test_what_is_not_in_the_log_any_more_is_in_its_archive(log: Path) -> None:
    log.write_bytes(b"gone\n" * 2000 + b"one\ntwo\n")
    punch(log, 10_000)
    archive_of(log).write_bytes(b"older\nold\n")

    assert last_lines(log, 3) == [b"old", b"one", b"two"]
    assert last_lines(log, 9) == [b"older", b"old", b"one", b"two"]


def test_a_log_that_is_one_hole_is_empty(log: Path) -> None:
    log.touch()
    os.truncate(log, 100_000)

    assert last_lines(log, 9) == []


def test_a_slow_reader_is_told_what_it_missed(log: Path, follower: Follower) -> None:
    append(log, b"gone\n" * 2000 + b"one\n")
    punch(log, 10_004)

    skipped, one = follower.new_lines()
    assert skipped.startswith(b"[10000 bytes were written faster than they were read")
    assert one == b"one"
    append(log, b"two\n")
    assert follower.new_lines() == [b"two"]


def test_a_flood_is_read_in_parts(
    log: Path, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_logs, "_MOST", 8)
    append(log, b"one\ntwo\nthree\n")
    log.rename(log.with_suffix(".2"))
    log.write_bytes(b"four\n")
    looks: list[list[bytes]] = []

    while not looks or follower.has_more:
        looks.append(follower.new_lines())

    assert looks == [[b"one", b"two"], [b"three", b"four"]]


def test_a_line_without_end_is_shown_in_parts(
    log: Path, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_logs, "_LONGEST_LINE", 8)
    append(log, b"0123456789")
    assert follower.new_lines() == [b"0123456789"]
    append(log, b"abc\n")
    assert follower.new_lines() == [b"abc"]


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_holds_nobody_up(log: Path, make: Callable[[Path], None]) -> None:
    make(log)

    with pytest.raises(OSError, match=str(log)):
        last_lines(log, 5)
    assert last_lines_if_any(log, 5) == []
    follower = Follower(log)
    assert follower.new_lines() == []

    log.unlink() if log.is_fifo() else log.rmdir()
    log.write_bytes(b"a file\n")
    assert follower.new_lines() == [b"a file"]
    follower.close()


def test_a_log_that_is_replaced_by_what_is_no_file_is_read_no_further(
    log: Path, follower: Follower
) -> None:
    log.unlink(missing_ok=True)
    os.mkfifo(log)

    assert follower.new_lines() == []
