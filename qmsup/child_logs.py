"""The log of a model's program, as it is read: its end, and what is appended to it.

The program writes the file itself, and the same one for as long as it runs. When the file is large, its older part is
moved to an archive beside it, which leaves a hole in its place: so offsets never change, the file's length tells
nothing of its size on disk, and what stands before the hole's end is in the archive.
"""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_BLOCK = 64 * 1024
_MOST = 1024 * 1024
"""Bytes read at one look. A program may write faster than anybody reads."""
_LONGEST_LINE = 64 * 1024
_LONG_LINE = 4 * 1024
"""Bytes that a line may have on average, where only so many are wanted: a program may write for ever without a line
end, and all it wrote would be read to find the first."""
_HOLE = b"\0"


def archive_of(log: Path) -> Path:
    """Where the older part of a log is."""
    return log.with_name(f"{log.name}.1")


def opened(path: Path, flags: int = os.O_RDONLY) -> int:
    """A descriptor of a log. Never waits for anybody, as the opening of a pipe does.

    Args:
        path: where it is.
        flags: how to open it.

    Raises:
        OSError: there is none, it may not be opened, or what is there is no file.
    """
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is no file", str(path))


def reading(path: Path) -> BinaryIO:
    """A log, to be read.

    Raises:
        OSError: as `opened` does.
    """
    return os.fdopen(opened(path), "rb")


def first_byte(file: BinaryIO) -> int:
    """Where a log begins: after its hole. Moves the file's position."""
    try:
        start = os.lseek(file.fileno(), 0, os.SEEK_DATA)
    except OSError:  # all of it is a hole, or it is no file on a disk
        return file.seek(0, os.SEEK_END)
    # A hole is kept in whole blocks, and the rest of the last one is zeros.
    file.seek(start)
    block = file.read(_BLOCK)
    return start + len(block) - len(block.lstrip(_HOLE))


def last_lines(path: Path, count: int) -> list[bytes]:
    """The last lines of a log, without their line ends; reads no more of it than it must.

    Of a progress bar, which is one line drawn over and over, only the last state is told, as a terminal would show it.

    Raises:
        OSError: there is no log, or none that can be read.
    """
    with reading(path) as file:
        lines, part = _lines_before(file, file.seek(0, os.SEEK_END), count)
    return _with_older(path, [*lines, part] if part else lines, count)


def last_lines_if_any(path: Path, count: int) -> list[bytes]:
    """The same; none where there is no log that can be read."""
    try:
        return last_lines(path, count)
    except OSError:
        return []


def _with_older(path: Path, lines: list[bytes], count: int) -> list[bytes]:
    if len(lines) < count and (older := archive_of(path)).exists():
        with reading(older) as file:
            end = file.seek(0, os.SEEK_END)
            before, part = _lines_before(file, end, count - len(lines))
        lines = [*before, *([part] if part else ()), *lines]
    return [_last_state(line) for line in lines[len(lines) - min(count, len(lines)) :]]


def _lines_before(file: BinaryIO, end: int, count: int) -> tuple[list[bytes], bytes]:
    """The last whole lines before `end`, at most so many, and what stands after them without a line end."""
    position = end
    start = max(first_byte(file), end - max(_MOST, count * _LONG_LINE))
    blocks: list[bytes] = []
    ends = 0
    # One more line end than lines: the first line is whole only if the end of the one before is there.
    while position > start and ends <= count:
        step = min(_BLOCK, position - start)
        position = file.seek(position - step)
        blocks.append(file.read(step))
        ends += blocks[-1].count(b"\n")
    *lines, part = b"".join(reversed(blocks)).split(b"\n")
    return lines[len(lines) - min(count, len(lines)) :], part


def _last_state(line: bytes) -> bytes:
    return line.rstrip(b"\r").rpartition(b"\r")[2]


class Follower:
    """What has been appended to a file since the last look. It may be absent, replaced, emptied, or no file at all."""

    def __init__(self, path: Path, *, from_start: bool = False) -> None:
        """Start at the file's present end, or at its start."""
        self._path = path
        self._part = b""
        self.has_more = False
        """The last look did not come to the end: the next one need not wait."""
        self._file = self._opened()
        if self._file is not None and not from_start:
            self._file.seek(0, os.SEEK_END)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def last_lines(self, count: int) -> list[bytes]:
        """The last whole lines before those that are new, as `last_lines` has them: once, before the first look."""
        if self._file is None:
            return []
        at = self._file.tell()
        lines, self._part = _lines_before(self._file, at, count)
        self._file.seek(at)
        try:
            return _with_older(self._path, lines, count)
        except OSError:  # its archive cannot be read
            return [_last_state(line) for line in lines]

    def new_lines(self) -> list[bytes]:
        """The lines completed since the last look, without their line ends; of 1 MiB at most."""
        lines: list[bytes] = []
        self.has_more = False
        if self._file is not None:
            self._rewind_if_emptied(self._file)
            lines += self._rest_of(self._file)
        if not self.has_more and self._is_replaced():
            self.close()
            self._part = b""
            self._file = self._opened()
            if self._file is not None:
                lines += self._rest_of(self._file)
        return lines

    def _rest_of(self, file: BinaryIO) -> list[bytes]:
        data = file.read(_MOST)
        self.has_more = len(data) == _MOST
        if data.startswith(_HOLE):
            data = self._after_hole(file, len(data))
        *lines, self._part = (self._part + data).split(b"\n")
        if len(self._part) > _LONGEST_LINE:
            lines.append(self._part)
            self._part = b""
        return lines

    def _after_hole(self, file: BinaryIO, length: int) -> bytes:
        """Go on after what was moved to the archive before it was read here: the reader was too slow."""
        at = file.tell() - length
        begins = first_byte(file)
        file.seek(max(at, begins))
        self._part = b""
        said = f"[{begins - at} bytes were written faster than they were read: they are in the archive]\n"
        return said.encode() + file.read(_MOST).lstrip(_HOLE)

    def _rewind_if_emptied(self, file: BinaryIO) -> None:
        if os.fstat(file.fileno()).st_size < file.tell():
            file.seek(0)
            self._part = b""

    def _is_replaced(self) -> bool:
        try:
            named = self._path.stat()
        except OSError:
            return False
        return self._file is None or not os.path.samestat(named, os.fstat(self._file.fileno()))

    def _opened(self) -> BinaryIO | None:
        try:
            return reading(self._path)
        except OSError:
            return None
