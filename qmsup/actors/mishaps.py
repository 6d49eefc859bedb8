"""Bugs of ours that were met and survived in this process, counted by part, to be told in `status`.

One ledger for the process, as for its log: whoever meets a bug, in whatever thread, has nothing else at hand.
"""

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from traceback import extract_tb

_MOST = 64
"""Parts. They are ours, and few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mishap:
    """What broke in one part.

    Attributes:
        part: of the process.
        times: how often, in this life.
        last: when, in Unix seconds.
        doing: what it was about then.
        because: the kind of exception, and where it was raised. Not its text, which may quote anything.
    """

    part: str
    times: int
    last: float
    doing: str
    because: str


_known: dict[str, Mishap] = {}
_lock = threading.Lock()


def note(part: str, doing: str, error: BaseException | None) -> int:
    """Something broke; how often it has by now. For any thread."""
    with _lock:
        known = _known.get(part)
        if known is None and len(_known) >= _MOST:
            return 0
        now = Mishap(part=part, times=0, last=time.time(), doing=doing, because=_because(error))
        _known[part] = replace(now, times=1 if known is None else known.times + 1)
        return _known[part].times


def told() -> Iterable[Mishap]:
    """Every part that has broken, by name. For any thread."""
    with _lock:
        return tuple(_known[part] for part in sorted(_known))


def forget() -> None:
    """As if nothing had happened: another life begins in this process."""
    with _lock:
        _known.clear()


def _because(error: BaseException | None) -> str:
    kind = type(error).__name__
    frames = extract_tb(error.__traceback__) if error is not None else []
    return f"{kind} at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else kind
