"""The number of this scheduler's life, counted in the state folder."""

from pathlib import Path

from qmsup.ids import Epoch, Incarnation
from qmsup.log import Log

_STARTS_PER_EPOCH = 1_000_000
_MOST = 1_000_000_000
"""More is no count of lives, and no number that all who are told it can hold."""
_log = Log("epoch")


def next_epoch(state_dir: Path) -> Epoch:
    """Count one up, safely against a crash in between; the first is 1. An unreadable count starts anew, and says so."""
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
    fresh = path.with_suffix(".new")
    fresh.write_text(f"{last + 1}\n")
    fresh.replace(path)
    return Epoch(last + 1)


def _number(text: str) -> int:
    last = int(text)
    if not 0 <= last < _MOST:
        raise ValueError(text)
    return last


def first_incarnation(epoch: Epoch) -> Incarnation:
    """Where this life's incarnations begin: above any number an earlier life can have used."""
    return Incarnation(epoch * _STARTS_PER_EPOCH + 1)
