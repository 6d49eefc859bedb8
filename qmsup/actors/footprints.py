"""The table of footprints: what starts with these arguments and these files were measured to take.

A file that was replaced, even by one of the same name, is another model; then the estimate counts until the new one
has been measured.
"""

import hashlib
import os
import sqlite3
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from qmsup.core.scheduling.effects import Remember
from qmsup.core.scheduling.memory_events import SeenBy
from qmsup.core.vram.load_log import LARGEST
from qmsup.units import MiB

_MOST = 4096
"""Rows that are kept: the newest."""
_MODEL_FLAGS = ("-m", "--model", "--diffusion-model")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """Which starts a figure is of.

    Attributes:
        model_file: its path, as the command names it; "" when no file is known (it is fetched by a name, say).
        files: a digest of names, sizes and times of all files in the command, the program apart.
        arguments: a digest of the command.
    """

    model_file: str
    files: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """One row.

    Attributes:
        ram: 0 = not known.
        measured: Unix seconds.
    """

    gpu: MiB
    ram: MiB
    seen_by: SeenBy
    measured: float


def key_of(argv: Sequence[str]) -> Key:
    """The key of starts with this command, by the files as they are now."""
    files = dict(_files_in(argv[1:]))
    model = _model_in(argv) or next(iter(files), "")
    return Key(
        model_file=_text(os.path.abspath(model) if model in files else model),  # noqa: PTH100 - links unresolved
        files=_digest(f"{name} {size} {time_ns}" for name, (size, time_ns) in files.items()),
        arguments=_digest(argv),
    )


def keep(connection: sqlite3.Connection, key: Key, measured: Remember) -> None:
    """Keep a figure in place of an earlier one.

    Raises:
        sqlite3.Error: it could not be written.
    """
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(
            "INSERT OR REPLACE INTO footprints VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                key.model_file,
                key.files,
                key.arguments,
                measured.peak,
                measured.ram,
                str(measured.seen_by),
                time.time(),
            ),
        )
        connection.execute(
            "DELETE FROM footprints WHERE measured < "
            "(SELECT measured FROM footprints ORDER BY measured DESC LIMIT 1 OFFSET ?)",
            (_MOST - 1,),
        )


def find(connection: sqlite3.Connection, key: Key) -> Footprint | None:
    """The figure of such starts.

    Raises:
        sqlite3.Error: it could not be read.
    """
    row = connection.execute(
        "SELECT gpu_mib, ram_mib, source, measured FROM footprints"
        " WHERE model_file = ? AND files = ? AND arguments = ?",
        (key.model_file, key.files, key.arguments),
    ).fetchone()
    if row is None or not all(_is_size(figure) for figure in row[:2]):
        return None
    gpu, ram, source, measured = row
    seen_by = SeenBy.LOAD_LOG if source == SeenBy.LOAD_LOG else SeenBy.TELEMETRY
    return Footprint(gpu=MiB(gpu), ram=MiB(ram), seen_by=seen_by, measured=measured)


def _is_size(figure: object) -> bool:
    """Whether it can be one: whatever a hand or another release wrote there, a model must not be refused for it."""
    return isinstance(figure, int) and 0 <= figure < LARGEST


def _model_in(argv: Sequence[str]) -> str:
    for flag, following in pairwise((*argv, "")):
        name, _, value = flag.partition("=")
        if name in _MODEL_FLAGS:
            return value or following
    return ""


def _files_in(words: Sequence[str]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Each file that a word names, alone or behind `--flag=`, with its size and its time."""
    for word in words:
        name = word.partition("=")[2] if word.startswith("-") else word
        try:
            seen = Path(name).stat()
        except (OSError, ValueError):
            continue
        if stat.S_ISREG(seen.st_mode):
            yield name, (seen.st_size, seen.st_mtime_ns)


def _text(name: str) -> str:
    """A name that may hold bytes that are no text, as the database can hold it."""
    return name.encode(errors="surrogatepass").decode(errors="replace")


def _digest(parts: Iterator[str] | Sequence[str]) -> str:
    whole = "\0".join(parts).encode(errors="surrogatepass")
    return hashlib.sha256(whole).hexdigest()
