"""What a child carries in its environment, so that a later scheduler knows it even where no record could be written.

A full disk takes no record. So each child has the same in its environment, sealed with a key that the state folder
alone holds: what the seal proves was started for this folder. A process that only claims it (its folder was removed
and made anew, or has the same path in a container) is told of, and is nobody's to end.
"""

import contextlib
import hmac
import json
import os
import secrets
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from qmsup.log import Log
from qmsup.places import state_dir
from qmsup.processes import procfs, records
from qmsup.processes.child import NONCE_VARIABLE
from qmsup.processes.procfs import Stat
from qmsup.processes.records import Record

MARK_VARIABLE = "QMSUP_CHILD_RECORD"
_KEY_BYTES = 32

_log = Log("processes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unrecorded:
    """A child without a record.

    Attributes:
        record: what it says of itself, with the pid of its leader; 0 when only others of its processes live.
        is_proved: the seal is this folder's.
        claimant: a process that carries the mark.
    """

    record: Record
    is_proved: bool
    claimant: int


def key_file() -> Path:
    """The key that seals marks. Who may read it may as well write records."""
    return state_dir() / "children.key"


def make_key() -> None:
    """Have a key, made if need be. Without room for one it stays away: then marks prove nothing, and that is said."""
    if len(_key()) == _KEY_BYTES:
        return
    fresh = key_file().with_suffix(".new")
    try:
        state_dir().mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(FileNotFoundError):
            fresh.unlink()
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(file, "wb") as new:  # noqa: PTH123 - a descriptor
            new.write(secrets.token_bytes(_KEY_BYTES))
        fresh.replace(key_file())
    except OSError as error:
        _log.warning("child.key_missing", file=str(key_file()), because=error.strerror)


def mark_of(record: Record) -> str:
    """What the child of this record is to carry in MARK_VARIABLE."""
    key = _key()
    if len(key) != _KEY_BYTES:
        make_key()
        key = _key()
    said, folder = records.as_json(record), str(state_dir().absolute())
    return json.dumps({"folder": folder, "record": said, "seal": _seal(said, key)})


def unrecorded(known: Collection[str]) -> Iterator[Unrecorded]:
    """The children that carry a mark of this state folder, one for each nonce that is not known.

    Args:
        known: nonces of children that have a record.
    """
    families: dict[str, list[tuple[Stat, str]]] = {}
    for stat in procfs.all_stats():
        nonce = procfs.value_in_environ(stat.pid, NONCE_VARIABLE) if stat.is_alive else None
        if nonce and nonce not in known:
            mark = procfs.value_in_environ(stat.pid, MARK_VARIABLE)
            if mark is not None:
                families.setdefault(nonce, []).append((stat, mark))
    for nonce, members in families.items():
        members.sort(key=lambda member: (member[0].start_ticks, member[0].pid))
        for stat, mark in members:
            found = _read(mark, nonce)
            if found is not None:
                record, is_proved = found
                leader = next((s for s, _ in members if s.session == s.pid), None)
                yield Unrecorded(
                    record=_of_leader(record, leader), is_proved=is_proved, claimant=stat.pid
                )
                break


def _of_leader(record: Record, leader: Stat | None) -> Record:
    record = replace(record, boot=procfs.boot_id(), pid=0, start_ticks=0)
    if leader is None:
        return record
    # Nobody wrote down whether it became ready, or was told to stop: its health tells.
    return replace(record, pid=leader.pid, start_ticks=leader.start_ticks, is_ready=True)


def _read(mark: str, nonce: str) -> tuple[Record, bool] | None:
    """The record in a mark of this folder, and whether its seal is right; None = it is none."""
    try:
        told = json.loads(mark)
        if told["folder"] != str(state_dir().absolute()):
            return None
        record = records.from_json(told["record"])
        seal = cast("str", told["seal"])
        is_sealed = bool(seal) and hmac.compare_digest(seal, _seal(told["record"], _key()))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return (record, is_sealed) if record.nonce == nonce else None


def _seal(text: str, key: bytes) -> str:
    """Empty without a key."""
    return hmac.new(key, text.encode(), "sha256").hexdigest() if key else ""


def _key() -> bytes:
    try:
        with open(key_file(), "rb", buffering=0) as file:  # noqa: PTH123 - at each start of a child
            return file.read()
    except OSError:
        return b""
