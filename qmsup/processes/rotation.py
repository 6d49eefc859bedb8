"""Keeps the log of a running child within bounds, without the child's help and without losing a byte.

The child has the file open and appends to it, so the file stays. Its older part is copied to an archive beside it, and
then its place is given back to the disk (`fallocate` with PUNCH_HOLE): the child goes on at the end as if nothing had
been. What is copied was written before and does not change, so there is no moment in which a line could be lost, as
there is between copying and truncating. The price: the file's length never shrinks while the child runs, only its size
on disk, and who reads it from its very start reads zeros first (`qmsup.child_logs` does not).

The file is held open. A log that somebody removed is still written by its child, where nobody can read it any more: its
older part is given back without an archive, or it would fill the disk unseen.
"""

import ctypes
import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from qmsup import open_files
from qmsup.child_logs import archive_of, first_byte, opened
from qmsup.log import Log
from qmsup.units import Seconds

LIMIT = 64 * 1024 * 1024
"""Bytes that a log may have before its older part is moved. The archive may have twice as many."""
_STEP = 4 * 1024 * 1024
"""Copied at once; in between, whoever keeps the log is there for others."""
_SELDOM = Seconds(4.0)
_QUIET = Seconds(12.0)
"""By and by, while nothing is written: longer than from one question whether the child lives to the next, so that the
look goes with the question."""
_OFTEN = Seconds(0.1)
_KEEP_SIZE_AND_PUNCH_HOLE = 0x03

_log = Log("processes")
_libc = ctypes.CDLL(None, use_errno=True)


def punch_hole(fd: int, length: int) -> None:
    """Give back the disk space of a file's first bytes, which read as zeros from then on.

    Raises:
        OSError: the file system cannot (EOPNOTSUPP).
    """
    fallocate = getattr(_libc, "fallocate64", None) or _libc.fallocate
    offset, size = ctypes.c_int64(0), ctypes.c_int64(length)
    if fallocate(ctypes.c_int(fd), ctypes.c_int(_KEEP_SIZE_AND_PUNCH_HOLE), offset, size) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class LogKeeper:
    """The log of one running child. Call `tend` no later than `due`; it never takes long."""

    __slots__ = (
        "_archived",
        "_copied",
        "_cut",
        "_file",
        "_looked_at",
        "_path",
        "_quiet_looks",
        "_size",
        "due",
    )

    def __init__(self, path: Path, now: Seconds) -> None:
        self._path = path
        self._cut = 0
        """Before this, the log is a hole."""
        self._file: BinaryIO | None = None
        """Not opened while a child starts."""
        self._archived: int | None = None
        """A rotation is under way and goes up to here; None = none is."""
        self._copied = 0
        self._size = 0
        self._quiet_looks = 0
        self._looked_at = now
        self.due: Seconds | None = Seconds(now + _OFTEN)
        """When to look again; None = never, as it is of no use."""

    def is_to_be_tended(self, now: Seconds) -> bool:
        """For somebody who is awake: half of the time before it is due will do."""
        return self.due is not None and now >= (self._looked_at + self.due) / 2

    def tend(self, now: Seconds) -> None:
        """Look how large the log is; move the next part of it if it is too large."""
        try:
            if self._file is None:
                self._file = os.fdopen(opened(self._path, os.O_RDWR), "r+b", buffering=0)
                self._size = self._cut = first_byte(self._file)
            if self._archived is None:
                self._look(self._file, now)
            else:
                self._move(self._file, self._archived)
                self.due = now
        except OSError as error:
            if open_files.is_used_up(error):
                self.due = Seconds(now + _SELDOM)
            else:
                self._give_up(error)

    def close(self) -> None:
        """The child is gone, or not looked after any more. May be repeated."""
        self.due = None
        if self._file is not None:
            self._file.close()
            self._file = None

    def _look(self, log: BinaryIO, now: Seconds) -> None:
        size = os.fstat(log.fileno()).st_size
        if size < self._cut:  # another hand has emptied it
            self._cut = self._size = first_byte(log)
        growth = (size - self._size) / max(0.001, now - self._looked_at)
        self._size, self._looked_at = size, now
        left = LIMIT - (size - self._cut)
        if left <= 0:
            self._archived = self._last_line_end(log, size)
            self._copied = self._first_kept(log, self._archived)
            if not self._is_named(log):
                self._copied = self._archived
            archive_of(self._path).with_suffix(".new").unlink(missing_ok=True)
            self.due = now
        else:
            self._quiet_looks = 0 if growth > 0 else self._quiet_looks + 1
            quiet = min(_SELDOM * self._quiet_looks, _QUIET)
            pause = quiet or min(max(left / growth / 2, _OFTEN), _SELDOM)
            self.due = Seconds(now + pause)

    def _is_named(self, log: BinaryIO) -> bool:
        """Whether the file is still found under its name, or was removed, or another put there."""
        try:
            return os.path.samestat(self._path.stat(), os.fstat(log.fileno()))
        except OSError:
            return False

    def _last_line_end(self, log: BinaryIO, size: int) -> int:
        """Where to part the log: between two lines, and so that its latest stays for those who are reading it."""
        limit = size - LIMIT // 4
        start = log.seek(max(self._cut, limit - _STEP))
        end = log.read(limit - start).rfind(b"\n")
        return limit if end < 0 else start + end + 1

    def _first_kept(self, log: BinaryIO, end: int) -> int:
        """Where the archive begins: more than it may hold came since the last look, or the log as it was then."""
        start = end - 2 * LIMIT
        if start <= self._cut:
            return self._cut
        log.seek(start)
        return start + log.read(min(_STEP, LIMIT)).find(b"\n") + 1

    def _move(self, log: BinaryIO, end: int) -> None:
        if os.fstat(log.fileno()).st_size < end:  # another hand has emptied it meanwhile
            archive_of(self._path).with_suffix(".new").unlink(missing_ok=True)
            self._cut, self._archived = 0, None
            return
        if self._copied < end:
            with suppress(_NoRoomError):
                self._copy(log, end)
                return
            self._copied = end  # with the disk full, room is worth more than old lines
            _log.warning("log.not_archived", log=str(self._path), because="the disk is full")
        else:
            fresh = archive_of(self._path).with_suffix(".new")
            if fresh.exists():
                fresh.replace(archive_of(self._path))
        punch_hole(log.fileno(), end)
        self._cut, self._archived = end, None

    def _copy(self, log: BinaryIO, end: int) -> None:
        fresh = archive_of(self._path).with_suffix(".new")
        log.seek(self._copied)
        data = log.read(min(_STEP, end - self._copied))
        try:
            archive = os.open(fresh, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                self._copied += os.write(archive, data)
            finally:
                os.close(archive)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            fresh.unlink(missing_ok=True)
            raise _NoRoomError from error

    def _give_up(self, error: OSError) -> None:
        self.close()
        _log.warning(
            "log.not_rotated",
            log=str(self._path),
            because=error.strerror or str(error),
            hint="it grows until its model is started anew; put QMSUP_STATE_DIR on ext4, xfs, btrfs or tmpfs",
        )


class _NoRoomError(Exception):
    """The disk is full."""
