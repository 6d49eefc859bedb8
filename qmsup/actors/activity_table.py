"""The table of activity: what became of each request. Neither prompts nor keys are in it."""

import sqlite3
import time
from collections.abc import Sequence

from qmsup.actors.finished import FIELDS, Row
from qmsup.units import Seconds

MOST = 100_000
"""Rows: some 20 MiB."""
OLDEST = Seconds(30 * 24 * 3600.0)

TABLE = """
    CREATE TABLE activity (
        id INTEGER PRIMARY KEY,
        listener TEXT NOT NULL,
        request TEXT NOT NULL,
        model TEXT NOT NULL,
        time REAL NOT NULL,
        ms INTEGER NOT NULL,
        outcome TEXT NOT NULL,
        status INTEGER NOT NULL,
        method TEXT NOT NULL,
        path TEXT NOT NULL,
        key TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        streaming INTEGER NOT NULL,
        wait_ms INTEGER,
        ttft_ms INTEGER,
        tokens_in INTEGER,
        tokens_out INTEGER,
        bytes INTEGER NOT NULL,
        route TEXT NOT NULL,
        host TEXT NOT NULL
    )
"""
_INSERT = f"INSERT INTO activity ({', '.join(FIELDS)}) VALUES ({', '.join('?' * len(FIELDS))})"  # noqa: S608 - names of ours

_SELECT = f"SELECT {', '.join(FIELDS)} FROM activity ORDER BY id DESC LIMIT ?"  # noqa: S608 - the same


def keep(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    """Add rows.

    Raises:
        sqlite3.Error: they could not be written.
    """
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(_INSERT, rows)


def recent(connection: sqlite3.Connection, most: int) -> list[Row]:
    """The last rows, oldest first.

    Raises:
        sqlite3.Error: they could not be read.
    """
    found = connection.execute(_SELECT, (most,)).fetchall()
    return [tuple(row) for row in reversed(found)]


def trim(connection: sqlite3.Connection, most: int = MOST, oldest: Seconds = OLDEST) -> None:
    """Drop the oldest rows, as far as there are more than `most`, and those that arrived longer ago than `oldest`.

    Raises:
        sqlite3.Error: they could not be dropped.
    """
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(
            "DELETE FROM activity WHERE id <= (SELECT max(id) FROM activity) - ?", (most,)
        )
        connection.execute("DELETE FROM activity WHERE time < ?", (time.time() - oldest,))
