"""`state.db` in the state folder: what outlives a life of the scheduler, in SQLite.

A file that cannot be used (torn by a crash of the box, or of a newer release) is set aside under another name and a
new one begun: what it held makes a start better, and must never hinder one.
"""

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path

from qmsup import places
from qmsup.actors import activity_table
from qmsup.log import Log

_TABLES: tuple[str, ...] = (
    """
    CREATE TABLE footprints (
        model_file TEXT NOT NULL,
        files TEXT NOT NULL,
        arguments TEXT NOT NULL,
        gpu_mib INTEGER NOT NULL,
        ram_mib INTEGER NOT NULL,
        source TEXT NOT NULL,
        measured REAL NOT NULL,
        PRIMARY KEY (model_file, files, arguments)
    ) WITHOUT ROWID
    """,
    "CREATE TABLE standing (id INTEGER PRIMARY KEY CHECK (id = 1), told TEXT NOT NULL)",
    activity_table.TABLE,
)
"""What each version of the file adds to the one before. Never change one that was released: append."""

_BESIDE = ("", "-wal", "-shm")
"""The file and its companions: they are nothing without each other."""
_LOCKED_FOR_S = 5.0

_log = Log("state")


class _OtherVersionError(sqlite3.DatabaseError):
    """The file was written by a newer release."""


def open_state(path: Path, tables: Sequence[str] = _TABLES) -> sqlite3.Connection:
    """The file, made if need be and brought up to date; for the calling thread alone.

    Args:
        path: the file.
        tables: for each version, what it adds.

    Raises:
        sqlite3.Error: the disk is full, or the folder cannot be used.
        OSError: the same.
    """
    places.make_private(path.parent)
    try:
        return _opened(path, tables)
    except sqlite3.DatabaseError as error:
        if not is_damaged(error):
            raise
        set_aside(path, error)
        return _opened(path, tables)


def is_damaged(error: sqlite3.Error) -> bool:
    """Whether the fault is the file's, not the disk's or ours."""
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(error, _OtherVersionError) or code in {
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
    }


def set_aside(path: Path, error: sqlite3.Error) -> None:
    """Give a file that cannot be used another name.

    Raises:
        OSError: it cannot be renamed.
    """
    aside = _free_name(path.with_name(f"{path.name}.unusable-{time.strftime('%Y%m%dT%H%M%S')}"))
    for suffix in _BESIDE:
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    _log.warning(
        "state.set_aside",
        file=str(path),
        because=str(error),
        kept_as=str(aside),
        hint="a new one is begun; remove the old one when you do not need it",
    )


def _opened(path: Path, tables: Sequence[str]) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_LOCKED_FOR_S, isolation_level=None)
    try:
        path.chmod(0o600)
        connection.execute("PRAGMA journal_mode = WAL")
        # With WAL this loses the last moments when the box loses power, and nothing when a process dies.
        connection.execute("PRAGMA synchronous = NORMAL")
        _check(connection)
        _bring_up_to_date(connection, tables)
    except BaseException:
        connection.close()
        raise
    return connection


def _bring_up_to_date(connection: sqlite3.Connection, tables: Sequence[str]) -> None:
    [version] = connection.execute("PRAGMA user_version").fetchone()
    if version > len(tables):
        message = f"it is of version {version}, and this release knows versions up to {len(tables)}"
        raise _OtherVersionError(message)
    for number, script in enumerate(tables[version:], version + 1):
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(script)
            connection.execute(f"PRAGMA user_version = {number}")


def _check(connection: sqlite3.Connection) -> None:
    [verdict] = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        error = sqlite3.DatabaseError(verdict)
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error


def _free_name(path: Path) -> Path:
    number = 1
    free = path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.name}-{number}")
    return free
