import os
from collections.abc import Callable
from pathlib import Path

import pytest

from qmsup import child_ends
from qmsup.ids import Incarnation

FIRST, SECOND = Incarnation(1), Incarnation(2)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "org%2Fchat.v1.log"


def test_an_end_is_found_by_who_asks_for_just_that(log: Path) -> None:
    assert child_ends.found(log, FIRST) == ""

    child_ends.leave(log, FIRST, "it crashed\nits last line\n")
    assert child_ends.found(log, FIRST) == "it crashed\nits last line\n"
    assert child_ends.found(log, SECOND) == ""

    child_ends.leave(log, SECOND, "it crashed again \udcff")
    assert child_ends.found(log, FIRST) == ""
    assert child_ends.found(log, SECOND) == "it crashed again ?"
    assert [path.name for path in log.parent.iterdir()] == ["org%2Fchat.v1.end"]


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_in_the_way_keeps_nobody(log: Path, make: Callable[[Path], None]) -> None:
    make(child_ends.end_file(log))
    assert child_ends.found(log, FIRST) == ""

    make(log.with_suffix(".end.new"))
    child_ends.leave(log, FIRST, "it crashed")
    assert child_ends.found(log, FIRST) == ""
