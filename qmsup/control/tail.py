"""The end of a log file, and what is appended to it, through rotation and truncation."""

import os
from pathlib import Path
from typing import BinaryIO

_BLOCK = 64 * 1024


def last_lines(path: Path, count: int) -> list[bytes]:
    """The last lines of a file, without their line ends; reads no more of it than it must."""
    with path.open("rb") as file:
        return _last_lines(file, count)


def _last_lines(file: BinaryIO, count: int) -> list[bytes]:
    if count == 0:
        return []
    position = file.seek(0, os.SEEK_END)
    text = b""
    # One more line end than lines: the first line is whole only if the end of the one before is there.
    while position > 0 and text.count(b"\n") <= count:
        step = min(_BLOCK, position)
        position = file.seek(position - step)
        text = file.read(step) + text
    return text.splitlines()[-count:]


class Follower:
    """What has been appended to a file since the last look. The file may be absent, replaced or emptied."""

    def __init__(self, path: Path, *, from_start: bool = False) -> None:
        """Start at the file's present end, or at its start."""
        self._path = path
        self._part = b""
        self._file = self._opened()
        if self._file is not None and not from_start:
            self._file.seek(0, os.SEEK_END)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def new_lines(self) -> list[bytes]:
        """The lines completed since the last look, without their line ends."""
        lines: list[bytes] = []
        if self._file is not None:
            self._rewind_if_emptied(self._file)
            lines += self._rest_of(self._file)
        if self._is_replaced():
            self.close()
            self._part = b""
            self._file = self._opened()
            if self._file is not None:
                lines += self._rest_of(self._file)
        return lines

    def _rest_of(self, file: BinaryIO) -> list[bytes]:
        *lines, self._part = (self._part + file.read()).split(b"\n")
        return lines

    def _rewind_if_emptied(self, file: BinaryIO) -> None:
        if os.fstat(file.fileno()).st_size < file.tell():
            file.seek(0)
            self._part = b""

    def _is_replaced(self) -> bool:
        try:
            named = self._path.stat()
        except FileNotFoundError:
            return False
        return self._file is None or not os.path.samestat(named, os.fstat(self._file.fileno()))

    def _opened(self) -> BinaryIO | None:
        try:
            return self._path.open("rb")
        except FileNotFoundError:
            return None
