"""A child's log. The child writes it itself (O_APPEND): a pipe would break with its reader, or fill up and block."""

import errno
import os
import re
import stat
import time
from pathlib import Path

from qmsup import open_files
from qmsup.child_logs import archive_of, first_byte, reading
from qmsup.errors import ChildError
from qmsup.ids import Incarnation, ModelId
from qmsup.places import log_file, make_private
from qmsup.processes.rotation import LIMIT

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_TAIL_BYTES = 16 * 1024
_LINE_CHARACTERS = 500
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def open_log(model: ModelId) -> tuple[Path, int]:
    """The model's log, made if need be: its path, and a descriptor that appends.

    With the disk full it goes nowhere: better a model without a log than none.

    Raises:
        ChildError: it cannot be written.
    """
    path = log_file(model)
    try:
        try:
            return path, _opened(path)
        except FileNotFoundError:  # the first log of this state folder
            make_private(path.parent)
            return path, _opened(path)
    except OSError as error:
        if error.errno in DISK_FULL:
            return path, os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        message = f"cannot write the log {path}: {error.strerror}; {_what_to_do(path, error)}"
        raise ChildError(message) from error


def _what_to_do(path: Path, error: OSError) -> str:
    if open_files.is_used_up(error):
        return open_files.MORE
    if path.exists() and not path.is_file():
        return "remove what is there"
    return "set QMSUP_STATE_DIR to a folder of yours"


def _opened(path: Path) -> int:
    descriptor = appending(path)
    # Its length counts the hole that a rotation left, so it is at least its size.
    if os.fstat(descriptor).st_size <= LIMIT:
        return descriptor
    try:
        if _size_of(path) <= LIMIT:
            return descriptor
        path.replace(archive_of(path))
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return appending(path)


def appending(path: Path) -> int:
    """A descriptor that appends to a log; never waits for a reader, as one of a pipe does.

    Raises:
        OSError: it cannot be written, or is such a pipe: a child's lines would wait for somebody to read them.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o600)
    if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is a pipe", str(path))
    os.set_blocking(descriptor, True)
    return descriptor


def _size_of(path: Path) -> int:
    """Of what is in a log, without the hole that a rotation left."""
    with reading(path) as log:
        start = first_byte(log)
        return log.seek(0, os.SEEK_END) - start


def mark_start(fd: int, *, program: str, port: int, incarnation: Incarnation) -> int:
    """Write the line that divides one start from the one before; where in the file the start begins.

    With the disk full the descriptor leads nowhere from then on: some programs end when they cannot write their log.
    The program alone is named: arguments may hold keys.
    """
    clock = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    line = f"=== qmsup {clock} start {incarnation}: {program} on port {port} ===\n"
    data = line.encode(errors="replace")
    try:
        is_written = os.write(fd, data) == len(data)
    except OSError:
        is_written = False
    start = os.fstat(fd).st_size
    if not is_written:
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(nowhere, fd, inheritable=False)
        os.close(nowhere)
    return start


def last_lines(path: Path, since: int, *, count: int = 12) -> str:
    """The end of what was written after `since`, for people: at most 16 KiB are read, however much there is."""
    try:
        with reading(path) as log:
            size = log.seek(0, os.SEEK_END)
            start = since if since <= size else 0  # another hand has cut the file
            log.seek(max(start, size - _TAIL_BYTES))
            text = log.read(_TAIL_BYTES).decode(errors="replace")
    except OSError:
        return ""
    lines = [_readable(line) for line in text.split("\n")]
    return "\n".join([line for line in lines if line][-count:])


def _readable(line: str) -> str:
    # A progress bar is one long line, drawn over and over after carriage returns: the last state is the one to show.
    shown = _COLOURS.sub("", line).rstrip().rpartition("\r")[2]
    return _CONTROLS.sub("", shown)[:_LINE_CHARACTERS]
