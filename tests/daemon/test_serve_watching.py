"""The file that `serve --watch` looks at."""

import os
from pathlib import Path

from qmsup.daemon.serve import Watched


def test_a_change_is_told_once_when_the_file_has_come_to_rest(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("a")
    watched = Watched(file)
    assert [watched.changed(), watched.changed()] == [False, False]

    file.write_text("ab")
    assert not watched.changed()  # it may still be written
    file.write_text("abc")
    assert not watched.changed()
    assert watched.changed()
    assert not watched.changed()


def test_a_file_that_is_replaced_or_touched_has_changed(tmp_path: Path) -> None:
    file, other = tmp_path / "c.yaml", tmp_path / "other"
    for path in (file, other):
        path.write_text("a")
        os.utime(path, (1, 1))
    watched = Watched(file)

    other.replace(file)
    assert [watched.changed(), watched.changed()] == [False, True]
    os.utime(file, (2, 2))
    assert [watched.changed(), watched.changed()] == [False, True]


def test_a_file_that_is_away_for_a_while_has_not_changed_by_that(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("a")
    watched = Watched(file)

    file.rename(tmp_path / "away")
    assert [watched.changed(), watched.changed()] == [False, False]
    (tmp_path / "away").rename(file)

    assert [watched.changed(), watched.changed()] == [False, False]
