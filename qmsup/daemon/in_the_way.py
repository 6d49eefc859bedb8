"""What stands in the places of our sockets, files and folders and is none of ours, found before anything is opened.

A folder where a socket belongs would end a scheduler with a traceback, a link where a lock belongs would have the file
that it leads to emptied, and what is another user's could be changed by that user.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override

from qmsup import places
from qmsup.ids import ModelId
from qmsup.processes.marks import key_file
from qmsup.processes.records import children_dir

_REMOVE = "remove it"
_ROOT = 0
"""Could change anything anyway."""
_BESIDE_THE_STATE = ("", "-wal", "-shm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Something in the way: where, what is wrong with it, and what to do."""

    path: Path
    says: str
    do: str

    @override
    def __str__(self) -> str:
        return f"{self.path} {self.says}: {self.do}"


def in_the_way() -> Iterator[Obstacle]:
    """Everything that is in the way."""
    for folder in (places.runtime_dir(), places.state_dir(), *_folders()):
        yield from _no_folder_of_ours(folder)
    for socket in (places.scheduler_socket(), places.feed_socket(), places.jobs_socket()):
        yield from _no_socket_of_ours(socket)
    for lock in (places.sockets_lock_file(), places.lock_file()):
        yield from _link(lock, "a lock")
    for file in _files():
        yield from _no_file_of_ours(file)


def _folders() -> Iterator[Path]:
    yield places.log_file(ModelId("any")).parent
    yield places.journal_dir()
    yield places.jobs_dir()
    yield places.config_copies()
    yield children_dir()


def _files() -> Iterator[Path]:
    yield places.sockets_lock_file()
    yield places.lock_file()
    yield places.state_dir() / "epoch"
    yield key_file()
    for suffix in _BESIDE_THE_STATE:
        database = places.state_db()
        yield database.with_name(database.name + suffix)


def _no_socket_of_ours(path: Path) -> Iterator[Obstacle]:
    found = _look(path, follows=False)
    if found is None:
        return
    if stat.S_ISLNK(found.st_mode):
        yield from _link(path, "a socket")
    elif not stat.S_ISSOCK(found.st_mode):
        yield Obstacle(path=path, says="is in the way of a socket and is none", do=_REMOVE)
    else:
        yield from _anothers(path, found, _REMOVE)


def _link(path: Path, what: str) -> Iterator[Obstacle]:
    if path.is_symlink():
        yield Obstacle(path=path, says=f"is a link in the way of {what}", do=_REMOVE)


def _no_file_of_ours(path: Path) -> Iterator[Obstacle]:
    found = _look(path)
    if found is None:
        return
    if not stat.S_ISREG(found.st_mode):
        yield Obstacle(path=path, says="is in the way of a file and is none", do=_REMOVE)
    else:
        yield from _anothers(path, found, f"chown {os.geteuid()} it, or remove it")


def _no_folder_of_ours(path: Path) -> Iterator[Obstacle]:
    found = _look(path)
    if found is None:
        return
    if not stat.S_ISDIR(found.st_mode):
        yield Obstacle(path=path, says="is in the way of a folder and is none", do=_REMOVE)
    else:
        do = f"chown {os.geteuid()} it, or set QMSUP_RUNTIME_DIR and QMSUP_STATE_DIR to folders of yours"
        yield from _anothers(path, found, do)


def _anothers(path: Path, found: os.stat_result, do: str) -> Iterator[Obstacle]:
    own = os.geteuid()
    if found.st_uid not in {own, _ROOT}:
        says = f"belongs to user {found.st_uid}, and this is user {own}"
        yield Obstacle(path=path, says=says, do=do)


def _look(path: Path, *, follows: bool = True) -> os.stat_result | None:
    """What is there; None = nothing, or what cannot be looked at, which shows when it is used."""
    try:
        return path.stat(follow_symlinks=follows)
    except OSError:
        return None
