from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmsup.control import tail
from qmsup.control.tail import Follower, last_lines


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
    st.lists(st.binary(max_size=9).filter(lambda b: not set(b) & set(b"\r\n"))), st.integers(0, 9)
)
def test_the_last_lines_are_the_last_lines(lines: list[bytes], count: int) -> None:
    import io

    text = b"".join(line + b"\n" for line in lines)

    assert tail._last_lines(io.BytesIO(text), count) == (lines[-count:] if count else [])


def test_only_the_end_of_a_long_file_is_read(log: Path) -> None:
    log.write_bytes(b"".join(b"line %d\n" % n for n in range(100_000)))

    assert last_lines(log, 2) == [b"line 99998", b"line 99999"]
    assert last_lines(log, 20_000)[0] == b"line 80000"


def test_a_line_without_an_end_counts(log: Path) -> None:
    log.write_bytes(b"whole\nhalf")

    assert last_lines(log, 2) == [b"whole", b"half"]


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
