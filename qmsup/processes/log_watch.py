"""Waits for a line in a child's log: how a program tells that it is ready when it answers nothing that can be asked.

The expression is the operator's, the log the program's, and nothing else runs in this process while Python matches one
with the other. What may never end is refused with the configuration; what may take long (`.*.*x`) is kept short here:
only so much of a line is looked at, and only for so long at a time.
"""

import re
import time
from collections import deque
from pathlib import Path

from qmsup.child_logs import reading
from qmsup.log import Log

_CHUNK = 256 * 1024
_LONGEST_LINE = 4 * 1024
"""Of what is longer the beginning is looked at, and of what has no end yet the end. No line that tells something to a
person is longer, and one expression takes four times as long for twice the length."""
_AT_A_TIME = 0.02
"""Seconds for lines in one look; the rest is looked at in the next one, after a pause."""
_SLOW = 0.5
"""Seconds for one line, of which an operator is told."""

_log = Log("processes")


class LogWatch:
    """Looks once at each part of a log that one start of a child has written."""

    __slots__ = ("_at", "_has_told", "_lines", "_log", "_looked_at", "_part", "_pattern")

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
        self._lines: deque[bytes] = deque()
        self._part = b""
        self._looked_at = b""
        self._has_told = False

    def saw(self) -> bool:
        """Whether the line stands in what was written since the last look. Reads 256 KiB at most."""
        if not self._lines:
            self._read()
        until = time.monotonic() + _AT_A_TIME
        while self._lines:
            if self._fits(self._lines.popleft()):
                return True
            if time.monotonic() > until:
                return False
        # A line may be the last one before a long wait, and without its end.
        if self._part == self._looked_at:
            return False
        self._looked_at = self._part
        return self._fits(self._part)

    def _read(self) -> None:
        try:
            with reading(self._log) as log:
                log.seek(self._at)
                data = log.read(_CHUNK)
        except OSError:
            return
        self._at += len(data)
        *lines, rest = re.split(rb"[\r\n]+", self._part + data)
        self._lines.extend(lines)
        self._part = rest[-_LONGEST_LINE:]

    def _fits(self, line: bytes) -> bool:
        began = time.monotonic()
        fits = self._pattern.search(line[:_LONGEST_LINE].decode("utf-8", "replace")) is not None
        took = time.monotonic() - began
        if took > _SLOW and not self._has_told:
            self._has_told = True
            _log.warning(
                "log.expression_is_slow",
                file=str(self._log),
                expression=self._pattern.pattern,
                took_s=round(took, 1),
                hint="all else waits for it: have it begin with letters, and repeat less",
            )
        return fits
