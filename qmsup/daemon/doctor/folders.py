"""The folders: whether they can be written, have room, are closed to others, and are short enough for a socket."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from qmsup import places
from qmsup.daemon.doctor.box import Box
from qmsup.daemon.doctor.closed import as_its_owner, closed_above
from qmsup.daemon.doctor.finding import Check, Finding
from qmsup.daemon.folders import SOCKET_PATH_MAX
from qmsup.daemon.in_the_way import in_the_way

_check = Check("folders")

_WHY_RUNTIME = "whoever can reach its socket controls the models"
_WHY_STATE = "models' logs and what was decided are kept there"

_ROOM_LITTLE_MIB = 1024
"""A child's log may grow to some 128 MiB, and there is one for each model."""
_ROOM_TOO_LITTLE_MIB = 64


def look(_box: Box) -> Iterator[Finding]:
    """Two folders, and the socket in one of them."""
    yield from _folder("QMSUP_RUNTIME_DIR", places.runtime_dir(), _WHY_RUNTIME)
    yield from _folder("QMSUP_STATE_DIR", places.state_dir(), _WHY_STATE)
    yield from _socket(places.scheduler_socket())
    with contextlib.suppress(PermissionError):  # a folder that is another user's, as was said above
        for obstacle in in_the_way():
            yield _check.bad(str(obstacle.path), obstacle.says, obstacle.do)


def _folder(variable: str, folder: Path, why_closed: str) -> Iterator[Finding]:
    elsewhere = f"set {variable} to a folder of yours"
    there = _nearest(folder)
    if not there.is_dir():
        yield _check.bad(
            str(folder), f"{there} is no folder", f"remove or rename it, or {elsewhere}"
        )
        return
    if why := _why_not(there):
        yield _check.bad(
            str(folder),
            f"user {os.getuid()} cannot write to {there}: {why}",
            f"{as_its_owner(there) if folder == there else 'mend that'}, or {elsewhere}",
        )
        return
    yield from _room(folder, there, elsewhere)
    if folder == there and folder.stat().st_mode & 0o077:
        yield _check.warn(
            str(folder),
            f"other users may look into it (mode {folder.stat().st_mode & 0o777:03o})",
            f"chmod 700 {folder}: {why_closed}",
        )


def _room(folder: Path, there: Path, elsewhere: str) -> Iterator[Finding]:
    free = shutil.disk_usage(there).free >> 20
    is_made = "" if folder == there else ", and will be made"
    if free < _ROOM_TOO_LITTLE_MIB:
        yield _check.bad(str(folder), f"{free} MiB are free", f"make room, or {elsewhere}")
    elif free < _ROOM_LITTLE_MIB and folder == places.state_dir():
        yield _check.warn(
            str(folder), f"{free} MiB are free, and logs grow there", f"make room, or {elsewhere}"
        )
    else:
        yield _check.ok(str(folder), f"can be written ({free} MiB free){is_made}")


def _socket(path: Path) -> Iterator[Finding]:
    length = len(os.fsencode(path))
    if length > SOCKET_PATH_MAX:
        yield _check.bad(
            str(path),
            f"its path has {length} bytes, and a socket's may have {SOCKET_PATH_MAX}",
            "set QMSUP_RUNTIME_DIR to a shorter folder",
        )


def _why_not(folder: Path) -> str:
    """Why nothing can be written there; "" when it can. A file without a name is what tells."""
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"x")
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""


def _nearest(folder: Path) -> Path:
    """It, or the nearest folder above it that is there and can be seen."""
    folder = closed_above(folder) or folder
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder
