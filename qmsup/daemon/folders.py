"""The folders a daemon needs, made before anything else."""

import contextlib
import errno
from pathlib import Path

from qmsup import places
from qmsup.daemon.in_the_way import in_the_way
from qmsup.errors import ConfigError

SOCKET_PATH_MAX = 107
"""Bytes in the path of a Unix socket (sockaddr_un)."""


def make_folders() -> None:
    """Make the runtime and the state folder, closed to other users, and see that nothing in them is in our way.

    Raises:
        ConfigError: one cannot be made or used, and the text says which variable moves it; or one problem for each
            thing that is in the way.
    """
    made: list[Path] = []
    for variable, folder in (
        ("QMSUP_RUNTIME_DIR", places.runtime_dir()),
        ("QMSUP_STATE_DIR", places.state_dir()),
    ):
        try:
            is_new = not folder.exists()
            places.make_private(folder)
            if is_new:
                made.append(folder)
            _try_to_write(folder)
        except OSError as error:
            for empty in made:  # what cannot start leaves nothing behind
                with contextlib.suppress(OSError):
                    empty.rmdir()
            why = "it is no folder" if isinstance(error, FileExistsError) else error.strerror
            message = f"cannot use {folder} ({why}): set {variable} to a folder of yours"
            raise ConfigError((message,)) from None
    socket = places.scheduler_socket()
    if len(str(socket).encode()) > SOCKET_PATH_MAX:
        message = f"{socket} is too long for a socket: set QMSUP_RUNTIME_DIR to a shorter folder"
        raise ConfigError((message,))
    if problems := tuple(map(str, in_the_way())):
        raise ConfigError(problems)


def _try_to_write(folder: Path) -> None:
    probe = folder / ".writable"
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:  # what there is may be written on
            raise
