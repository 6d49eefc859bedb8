"""What a child said of its memory while it loaded: the new part of its log is read once, when it is ready."""

import os
from pathlib import Path

from qmsup.child_logs import reading
from qmsup.core.vram import load_log
from qmsup.core.vram.load_log import LoadFigures

_MOST_BYTES = 2 * 1024 * 1024
"""A load at the highest verbosity writes a tenth of it. What is read in part would be counted in part."""


def figures_of(log: Path, since: int) -> LoadFigures | None:
    """The figures in what was written after `since`, in bytes; None where nothing is said, or too much is."""
    try:
        with reading(log) as file:
            size = file.seek(0, os.SEEK_END)
            start = since if since <= size else 0  # another hand has cut the file
            if size - start > _MOST_BYTES:
                return None
            file.seek(start)
            text = file.read(_MOST_BYTES).decode(errors="replace")
    except OSError:
        return None
    return load_log.read(text)
