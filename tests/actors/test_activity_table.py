import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmsup.actors import activity_table, finished
from qmsup.actors.finished import Finished, Row
from qmsup.actors.state_file import open_state
from qmsup.ids import ListenerName, ModelId, RequestId
from qmsup.units import Seconds

DAY = 24 * 3600.0


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = open_state(tmp_path / "state.db")
    yield connection
    connection.close()


def row(number: int, *, age: float = 0.0) -> Row:
    request = Finished(
        request=RequestId(f"q-{number}"),
        model=ModelId("m"),
        time=time.time() - age,
        ms=12,
        outcome="finished",
        status=200,
        tokens_in=5,
    )
    return finished.row_of(ListenerName("main"), request)


def requests_in(db: sqlite3.Connection) -> list[str]:
    return [name for [name] in db.execute("SELECT request FROM activity ORDER BY id")]


def test_a_row_holds_what_was_told(db: sqlite3.Connection) -> None:
    activity_table.keep(db, [row(1)])

    cursor = db.execute(
        "SELECT listener, model, status, outcome, ms, wait_ms, tokens_in, tokens_out, host"
        " FROM activity"
    )
    assert cursor.fetchall() == [("main", "m", 200, "finished", 12, None, 5, None, "local")]


def test_the_last_rows_are_told_as_they_were_kept(db: sqlite3.Connection) -> None:
    rows = [row(number) for number in range(5)]
    activity_table.keep(db, rows)

    assert activity_table.recent(db, 2) == rows[-2:]
    assert activity_table.recent(db, 9) == rows


def test_only_the_newest_rows_are_kept(db: sqlite3.Connection) -> None:
    activity_table.keep(db, [row(number) for number in range(20)])

    activity_table.trim(db, most=3)

    assert requests_in(db) == ["q-17", "q-18", "q-19"]


def test_rows_that_are_too_old_go(db: sqlite3.Connection) -> None:
    activity_table.keep(db, [row(1, age=31 * DAY), row(2, age=29 * DAY), row(3)])

    activity_table.trim(db)

    assert requests_in(db) == ["q-2", "q-3"]


def test_an_empty_table_has_nothing_to_drop(db: sqlite3.Connection) -> None:
    activity_table.trim(db, most=1, oldest=Seconds(0.0))

    assert requests_in(db) == []
