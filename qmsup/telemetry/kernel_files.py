"""The small files in which Linux tells one thing each, and which may not be there."""

from pathlib import Path


def text_of(file: Path) -> str | None:
    """What stands in a file of the kernel; None where it is not there or says nothing."""
    try:
        with open(file, "rb", buffering=0) as opened:  # noqa: PTH123 - a Path's text costs twice as much
            return opened.read().decode(errors="replace").strip() or None
    except OSError:
        return None


def number_in(file: Path) -> int | None:
    """The whole number in a file of the kernel; None where there is none."""
    text = text_of(file)
    return int(text) if text is not None and text.isdecimal() else None
