"""The journal on disk: numbered segments of lines, the oldest removed when they grow past their bound."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from qmsup import places

_SEGMENT = 4 * 1024 * 1024
_SEGMENTS = 4


class JournalFolder:
    """Appends to the newest segment, from one thread. Whoever reads the files may find a torn last line."""

    def __init__(self, folder: Path, *, segment: int = _SEGMENT, segments: int = _SEGMENTS) -> None:
        """Nothing is touched yet.

        Args:
            folder: made when it is first written to.
            segment: bytes after which a new one is begun.
            segments: how many are kept, the one written to among them.
        """
        self._folder = folder
        self._segment = segment
        self._segments = segments
        self._file: IO[bytes] | None = None
        self._size = 0

    def append(self, lines: bytes) -> None:
        """Write whole lines.

        Raises:
            OSError: they could not be written, or not all of them; the next try begins a line of its own.
        """
        try:
            if self._file is None or self._size >= self._segment or _is_removed(self._file):
                self._begin()
            file = self._file
            assert file is not None, "a segment has been begun"
            left = memoryview(lines)
            while left:
                left = left[file.write(left) :]
        except BaseException:  # a bug of ours tears a line, too
            self.close()
            raise
        self._size += len(lines)

    def close(self) -> None:
        """Close the segment in hand."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _begin(self) -> None:
        """Go on with the newest segment while it has room, else begin another."""
        self.close()
        places.make_private(self._folder)
        known = places.journal_segments(self._folder)
        path = known[-1] if known else self._folder / _name(1)
        if path.exists() and path.stat().st_size >= self._segment:
            path = self._folder / _name(int(path.stem) + 1)
        others = [old for old in known if old != path]
        for old in others[: -(self._segments - 1) or None]:
            old.unlink(missing_ok=True)
        self._file = path.open("ab", buffering=0)
        self._size = self._file.tell()
        if self._size and not _ends_with_a_line(path):
            self._size += self._file.write(b"\n")  # what follows a torn line is whole again


def lines_in(folder: Path) -> Iterator[bytes]:
    """Every line on disk, oldest first, each as it stands.

    Raises:
        OSError: a segment cannot be read.
    """
    for path in places.journal_segments(folder):
        with path.open("rb") as file:
            yield from file


def _is_removed(file: IO[bytes]) -> bool:
    return os.fstat(file.fileno()).st_nlink == 0


def _name(number: int) -> str:
    return f"{number:08}.jsonl"


def _ends_with_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) == b"\n"
