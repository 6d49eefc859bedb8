"""Waits for a line in a child's log: how a program tells that it is ready when it answers nothing that can be asked."""

import re
from pathlib import Path

_CHUNK = 256 * 1024
_LONGEST_LINE = 8 * 1024
"""What is longer is looked at in pieces: a program may write for ever without a line end."""


class LogWatch:
    """Looks once at each part of a log that one start of a child has written."""

    __slots__ = ("_at", "_log", "_part", "_pattern")

    def __init__(self, log: Path, since: int, pattern: str) -> None:
        """Look at nothing yet.

        Args:
            log: the file.
            since: where in it the start begins, in bytes.
            pattern: a regular expression; it has to match somewhere in a line.
        """
        self._log = log
        self._at = since
        self._pattern = re.compile(pattern)
        self._part = b""

    def saw(self) -> bool:
        """Whether the line stands in what was written since the last look. Reads 256 KiB at most."""
        try:
            with self._log.open("rb") as log:
                log.seek(self._at)
                data = log.read(_CHUNK)
        except OSError:
            return False
        self._at += len(data)
        *lines, rest = re.split(rb"[\r\n]+", self._part + data)
        self._part = rest[-_LONGEST_LINE:]
        # A line may be the last one before a long wait, and without its end.
        return any(
            self._pattern.search(line.decode("utf-8", "replace")) for line in (*lines, self._part)
        )
