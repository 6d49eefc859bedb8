"""The folders a daemon needs, made before anything else."""

import errno
from pathlib import Path

from qmsup import places
from qmsup.errors import ConfigError

SOCKET_PATH_MAX = 107
"""Bytes in the path of a Unix socket (sockaddr_un)."""


def make_folders() -> None:
    """Make the runtime and the state folder, closed to other users.

    Raises:
        ConfigError: one cannot be made or used; the text says which variable moves it.
    """
    for variable, folder in (
        ("QMSUP_RUNTIME_DIR", places.runtime_dir()),
        ("QMSUP_STATE_DIR", places.state_dir()),
    ):
        try:
            places.make_private(folder)
            _try_to_write(folder)
        except OSError as error:
            message = f"cannot use {folder} ({error.strerror}): set {variable} to a folder of yours"
            raise ConfigError((message,)) from None
    socket = places.scheduler_socket()
    if len(str(socket).encode()) > SOCKET_PATH_MAX:
        message = f"{socket} is too long for a socket: set QMSUP_RUNTIME_DIR to a shorter folder"
        raise ConfigError((message,))
    if socket.exists() and not socket.is_socket():
        message = f"{socket} is in the way of the scheduler's socket and is none: remove it"
        raise ConfigError((message,))


def _try_to_write(folder: Path) -> None:
    probe = folder / ".writable"
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:  # what there is may be written on
            raise
