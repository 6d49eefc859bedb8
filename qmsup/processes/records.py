"""One small file for each child, which tells a later scheduler of it should this one die without ending it.

It is written before the child is spawned, when only the nonce is known, and again with the pid: so there is no moment
in which a child can be lost.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import cast

from qmsup import open_files
from qmsup.errors import ChildError
from qmsup.places import make_private, state_dir
from qmsup.processes import procfs
from qmsup.spec import ModelSpec

_ELSEWHERE = "set QMSUP_STATE_DIR to a folder of yours"
_NONCE_IN_NAME = 12
_SIZE = 2048
"""Bytes of each record, blanks at the end: more than its fields can have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What names a child beyond doubt.

    Attributes:
        pid, start_ticks: its leader; both 0 until it is spawned.
        boot: pids and ticks mean nothing after another boot.
        owner, owner_ticks: the scheduler process that it belongs to.
        is_ready: it answered, and was not told to stop since: another scheduler may go on with it.
        host: where it answers.
        total_slots: how many requests it takes at once, as it said itself.
        context: tokens that each of these may have, as it said itself.
        command: a digest of what it was started with.
        est_vram: what it was charged then, in MiB.
        log_start: where in its log this start begins, in bytes.
    """

    model: str
    incarnation: int
    nonce: str
    port: int
    boot: str
    owner: int
    owner_ticks: int
    pid: int = 0
    start_ticks: int = 0
    is_ready: bool = False
    host: str = ""
    total_slots: int | None = None
    context: int | None = None
    command: str = ""
    est_vram: int = 0
    log_start: int = 0

    @property
    def path(self) -> Path:
        """Where it is kept."""
        return children_dir() / f"{self.nonce[:_NONCE_IN_NAME]}.json"

    @property
    def owner_is_alive(self) -> bool:
        """Whether the scheduler that spawned it still runs."""
        owner = procfs.stat_of(self.owner)
        return owner is not None and owner.is_alive and owner.start_ticks == self.owner_ticks


def children_dir() -> Path:
    """The folder of the records."""
    return state_dir() / "children"


def as_json(record: Record) -> str:
    """A record as text."""
    return json.dumps({name: getattr(record, name) for name in Record.__slots__})


def from_json(text: str) -> Record:
    """The record that a text tells of.

    Raises:
        ValueError, TypeError, RecursionError: it is none.
    """
    record = Record(**json.loads(text))
    for field in fields(record):
        if not isinstance(getattr(record, field.name), cast("type", field.type)):
            raise TypeError(f"{field.name} is no {field.type}")
    return record


@cache
def _ticks_of_owner(pid: int) -> int:
    """Of this process: it stays what it is for as long as it has this pid."""
    own = procfs.read_stat(pid)
    return own.start_ticks if own else 0


def new_record(*, model: str, incarnation: int, nonce: str, port: int) -> Record:
    """The record of a child that this process is about to spawn."""
    return Record(
        model=model,
        incarnation=incarnation,
        nonce=nonce,
        port=port,
        boot=procfs.boot_id(),
        owner=os.getpid(),
        owner_ticks=_ticks_of_owner(os.getpid()),
    )


def digest_of(spec: ModelSpec) -> str:
    """Tells whether two starts are of one command, without telling the command: it may hold keys."""
    parts = (*spec.argv, "", *spec.env)
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:32]


def owned(record: Record) -> Record:
    """The record with this process for its owner."""
    return replace(record, owner=os.getpid(), owner_ticks=_ticks_of_owner(os.getpid()))


def write(record: Record) -> None:
    """Keep a record, in place of an earlier one of the same child.

    It is written over the earlier one, in one piece and of one size: so nobody reads half of it, and no start waits
    for a disk, as it may for a renamed file. What the machine's own end may spoil means nothing after it.

    Raises:
        ChildError: the folder cannot be written.
    """
    path, data = record.path, as_json(record).ljust(_SIZE).encode()
    try:
        try:
            _put(path, data)
        except FileNotFoundError:  # the first child of this state folder
            make_private(path.parent)
            _put(path, data)
    except OSError as error:
        what = open_files.MORE if open_files.is_used_up(error) else _ELSEWHERE
        message = f"cannot write {path}: {error.strerror}; {what}"
        raise ChildError(message) from error


def _put(path: Path, data: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(file, data, 0)
    finally:
        os.close(file)


def erase(record: Record) -> None:
    """The child is gone, or was never spawned."""
    with contextlib.suppress(OSError):
        record.path.unlink(missing_ok=True)


def read_all(*, removes_unreadable: bool = True) -> Iterator[Record]:
    """Every record there is. What cannot be read is removed, unless told otherwise: it proves nothing."""
    for path in sorted(children_dir().glob("*")):
        try:
            record = _read(path)
        except (OSError, ValueError, TypeError, RecursionError):
            if removes_unreadable:
                with contextlib.suppress(
                    OSError
                ):  # a folder, say: somebody else's, and in nobody's way
                    path.unlink()
        else:
            yield record


def _read(path: Path) -> Record:
    record = from_json(path.read_text())
    if record.path != path:
        raise ValueError(f"{path} is not where its own record is kept")
    return record
