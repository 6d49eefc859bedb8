import os
from collections.abc import Callable
from pathlib import Path

import pytest

from qmsup.errors import ChildError
from qmsup.ids import Incarnation, ModelId
from qmsup.processes import output
from tests.support.descriptors import no_descriptor_left

M = ModelId("org/model")


def write(fd: int, text: str) -> None:
    os.write(fd, text.encode())


def start(fd: int, number: int) -> int:
    return output.mark_start(fd, program="fake", port=21000, incarnation=Incarnation(number))


def test_the_last_lines_are_those_of_this_start(places: Path) -> None:
    log, fd = output.open_log(M)
    start(fd, 1)
    write(fd, "old\n")
    since = start(fd, 2)
    write(fd, "one\n\ntwo\nthree")
    os.close(fd)

    assert log == places / "state/logs/org%2Fmodel.log"
    assert output.last_lines(log, since) == "one\ntwo\nthree"
    assert output.last_lines(log, since, count=2) == "two\nthree"
    assert "start 2: fake on port 21000" in log.read_text()


def test_a_flood_is_read_from_its_end_only(places: Path) -> None:
    log, fd = output.open_log(M)
    since = start(fd, 1)
    write(fd, "x" * 100_000 + "\n" + "y" * 10_000 + "\nend\n")
    os.close(fd)

    lines = output.last_lines(log, since).split("\n")

    assert lines[-1] == "end"
    assert [len(line) for line in lines] == [500, 500, 3]


def test_colours_and_progress_bars_are_made_readable(places: Path) -> None:
    log, fd = output.open_log(M)
    since = start(fd, 1)
    write(fd, "\x1b[31mred\x1b[0m\r\n 1/8\r 8/8\x1b[K\n\x00\xff\n")
    os.close(fd)

    assert output.last_lines(log, since) == "red\n 8/8\n\xff"


def test_a_log_that_was_cut_or_removed_is_no_trouble(places: Path) -> None:
    log, fd = output.open_log(M)
    since = start(fd, 1)
    os.ftruncate(fd, 0)
    write(fd, "new\n")
    os.close(fd)

    assert output.last_lines(log, since) == "new"
    log.unlink()
    assert output.last_lines(log, since) == ""


def test_a_log_that_has_grown_too_long_makes_room_at_the_next_start(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "LIMIT", 10)
    log, fd = output.open_log(M)
    write(fd, "more than ten\n")
    os.close(fd)

    log, fd = output.open_log(M)
    os.close(fd)

    assert log.read_text() == ""
    assert log.with_suffix(".log.1").read_text() == "more than ten\n"


def test_a_hole_that_a_rotation_left_does_not_count(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "LIMIT", 10)
    log, fd = output.open_log(M)
    os.ftruncate(fd, 1_000_000)
    write(fd, "few\n")
    os.close(fd)

    os.close(output.open_log(M)[1])

    assert log.stat().st_size == 1_000_004


def test_a_folder_that_cannot_be_made_is_told_with_the_way_out(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (places / "file").write_text("")
    monkeypatch.setenv("QMSUP_STATE_DIR", str(places / "file"))

    with pytest.raises(ChildError, match="set QMSUP_STATE_DIR"):
        output.open_log(M)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_in_the_way_of_a_log_is_told(places: Path, make: Callable[[Path], None]) -> None:
    path = places / "state/logs/m.log"
    path.parent.mkdir(parents=True)
    make(path)

    with pytest.raises(ChildError, match="remove what is there"):
        output.open_log(ModelId("m"))
    assert output.last_lines(path, 0) == ""


def test_a_pipe_that_is_read_is_no_log_either(places: Path) -> None:
    path = places / "state/logs/m.log"
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    with pytest.raises(ChildError, match="it is a pipe; remove what is there"):
        output.open_log(ModelId("m"))
    os.close(reader)


def test_a_log_that_cannot_be_opened_for_want_of_descriptors_says_so(places: Path) -> None:
    (places / "state/logs").mkdir(parents=True)

    with no_descriptor_left(), pytest.raises(ChildError, match="raise the limit of open files"):
        output.open_log(ModelId("m"))
