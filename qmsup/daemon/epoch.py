"""The number of this scheduler's life, counted in the state folder."""

from pathlib import Path

from qmsup.ids import Epoch, Incarnation
from qmsup.log import Log

_STARTS_PER_EPOCH = 1_000_000
_MOST = 1_000_000_000
"""More is no count of lives, and no number that all who are told it can hold."""
_log = Log("epoch")


def next_epoch(state_dir: Path) -> Epoch:
    """Count one up, safely against a crash in between; the first is 1. An unreadable count starts anew, and says so.

    Raises:
        OSError: it cannot be written.
    """
    path = state_dir / "epoch"
    try:
        last = _number(path.read_text())
    except FileNotFoundError:
        last = 0
    except ValueError:
        _log.warning(
            "epoch.unreadable", file=str(path), because="not a number; counting from 1 again"
        )
        last = 0
    write_epoch(state_dir, Epoch(last + 1))
    return Epoch(last + 1)


def write_epoch(state_dir: Path, epoch: Epoch) -> None:
    """Write down which one this is.

    Raises:
        OSError: it cannot be written.
    """
    path = state_dir / "epoch"
    fresh, text = path.with_suffix(".new"), f"{epoch}\n"
    try:
        fresh.write_text(text)
        fresh.replace(path)
    except (
        OSError
    ):  # a full disk has no room for a second file, but for this one's few bytes it has
        _overwrite(path, text)


def _overwrite(path: Path, text: str) -> None:
    with path.open("r+b", buffering=0) as file:
        file.write(text.ljust(path.stat().st_size).encode())


def _number(text: str) -> int:
    last = int(text)
    if not 0 <= last < _MOST:
        raise ValueError(text)
    return last


def first_incarnation(epoch: Epoch) -> Incarnation:
    """Where this life's incarnations begin: above any number an earlier life can have used."""
    return Incarnation(epoch * _STARTS_PER_EPOCH + 1)
