"""`state.db` on a real disk: kept, brought up to date, and set aside when it cannot be used."""

import logging
import sqlite3
from pathlib import Path

import pytest

from qmsup.actors.state_file import open_state

FIRST = ("CREATE TABLE things (name TEXT)",)
SECOND = (*FIRST, "CREATE TABLE others (name TEXT)")


def names_in(connection: sqlite3.Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM things ORDER BY name")]


def put(path: Path, name: str, tables: tuple[str, ...] = FIRST) -> None:
    connection = open_state(path, tables)
    connection.execute("INSERT INTO things VALUES (?)", (name,))
    connection.close()


def look(path: Path, tables: tuple[str, ...] = FIRST) -> list[str]:
    connection = open_state(path, tables)
    names = names_in(connection)
    connection.close()
    return names


def test_what_is_written_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "state" / "state.db"

    put(path, "a")
    put(path, "b")

    assert look(path) == ["a", "b"]
    assert path.stat().st_mode & 0o077 == 0


def test_what_a_process_that_was_killed_had_written_is_there(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    killed = open_state(path, FIRST)  # never closed: its WAL stays
    killed.execute("INSERT INTO things VALUES ('a')")
    copy = tmp_path / "copy.db"
    for suffix in ("", "-wal"):
        copy.with_name(copy.name + suffix).write_bytes(
            path.with_name(path.name + suffix).read_bytes()
        )
    killed.close()

    assert look(copy) == ["a"]


def test_a_newer_release_adds_its_tables_and_keeps_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    put(path, "a")

    connection = open_state(path, SECOND)

    assert connection.execute("SELECT count(*) FROM others").fetchone() == (0,)
    assert names_in(connection) == ["a"]
    connection.close()


def test_an_upgrade_that_fails_leaves_all_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    put(path, "a")

    with pytest.raises(sqlite3.OperationalError):
        open_state(path, (*FIRST, "CREATE TABLE nonsense"))

    assert look(path, SECOND) == ["a"]


def damage_all(path: Path) -> None:
    path.write_bytes(b"this was never a database, and is longer than a header" * 4)


def damage_the_middle(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    whole[4096:] = b"\xff" * (len(whole) - 4096)
    path.write_bytes(whole)


def make_newer(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()


@pytest.mark.parametrize("damage", [damage_all, damage_the_middle, make_newer])
def test_a_file_that_cannot_be_used_is_set_aside_and_named(
    tmp_path: Path, damage: object, caplog: pytest.LogCaptureFixture
) -> None:
    assert callable(damage)
    caplog.set_level(logging.WARNING, "qmsup")
    path = tmp_path / "state.db"
    for _ in range(2):
        put(path, "a")
        damage(path)
        before = path.read_bytes()

        assert look(path) == []
        told = vars(caplog.records[-1])["qmsup_fields"]
        assert Path(told["kept_as"]).read_bytes() == before

    assert len(list(tmp_path.glob("state.db.unusable-*"))) == 2
    assert caplog.records[-1].getMessage() == "state.set_aside"


def test_a_folder_that_cannot_be_used_is_no_fault_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "state.db").mkdir()
    (tmp_path / "file").write_text("where a folder should be")

    with pytest.raises(sqlite3.OperationalError):
        open_state(tmp_path / "state.db")
    with pytest.raises(OSError, match="exists"):
        open_state(tmp_path / "file" / "state.db")
