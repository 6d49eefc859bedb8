"""From the log of a live box to a trace: who asked for what, when, and how long the answer took.

The listeners' access log (`accessLog`, written as JSON with `logFormat: json`) has a line for each request when it
ended. Other lines are passed over; one that names no model was no request for one.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import TypeGuard

from qmsup.core.scheduling.events import Outcome

_MS = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One request of the log. `duration` is None when it was never granted."""

    arrived: float
    model: str
    duration: float | None
    left_after: float | None
    outcome: str


@dataclass(frozen=True, slots=True)
class Recording:
    """What a log holds.

    Attributes:
        lines: of a trace, each a JSON object, in order of arrival; the first comes at 0.
        passed_over: lines of the log that are no requests for a model.
    """

    lines: tuple[str, ...]
    passed_over: int


def recording_of(log: Iterable[bytes]) -> Recording:
    """Turn a log into the lines of a trace.

    A request that was refused, or whose client left before its turn, is asked for again: its answer is taken to
    last as long as that model's answers do, by the median. What a client left while it waited, it leaves again.
    """
    entries: list[_Entry] = []
    passed_over = 0
    for line in log:
        entry = _entry(line)
        if entry is None:
            passed_over += bool(line.strip())
        else:
            entries.append(entry)
    entries.sort(key=lambda entry: entry.arrived)
    return Recording(tuple(_lines(entries)), passed_over)


def _entry(line: bytes) -> _Entry | None:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or document.get("event") != "request":
        return None
    model, ended, took = document.get("model"), document.get("time"), document.get("ms")
    if not isinstance(model, str) or not model or not _is_number(ended) or not _is_number(took):
        return None
    waited = document.get("wait_ms")
    duration = max(0.0, took - waited) / _MS if _is_number(waited) else None
    outcome = document.get("outcome")
    has_left = duration is None and outcome == Outcome.ABANDONED
    return _Entry(
        arrived=ended - took / _MS,
        model=model,
        duration=duration,
        left_after=took / _MS if has_left else None,
        outcome=str(outcome) if outcome in set(Outcome) else Outcome.FINISHED,
    )


def _lines(entries: list[_Entry]) -> Iterator[str]:
    durations: defaultdict[str, list[float]] = defaultdict(list)
    for entry in entries:
        if entry.duration is not None:
            durations[entry.model].append(entry.duration)
    for entry in entries:
        duration = entry.duration
        if duration is None:
            duration = median(durations[entry.model] or [0.0])
        line: dict[str, object] = {
            "t": round(entry.arrived - entries[0].arrived, 3),
            "model": entry.model,
            "duration": round(duration, 3),
            "outcome": entry.outcome,
        }
        if entry.left_after is not None:
            line["abandon_after"] = round(entry.left_after, 3)
        yield json.dumps(line, ensure_ascii=False)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
