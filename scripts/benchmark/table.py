"""The result, for people and for programs. Pure."""

import math
from collections.abc import Mapping, Sequence

from scripts.benchmark.figures import Who
from scripts.benchmark.targets import Row

_HEAD = ("figure", "unit", *Who, "compared", "target", "kept")
_KEPT = {True: "yes", False: "NO", None: ""}


def number(value: float) -> str:
    """Three figures are as many as such a measurement carries; nothing for nan."""
    if math.isnan(value):
        return ""
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", " ")
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def cells(row: Row) -> tuple[str, ...]:
    """The texts of one line, in the order of the head."""
    return (
        row.name,
        row.unit,
        *(number(row.figures.get(who, math.nan)) for who in Who),
        number(row.found),
        row.target.words() if row.target else "",
        _KEPT[row.kept],
    )


def rendered(rows: Sequence[Row]) -> str:
    """The table as aligned text that is Markdown too, then the notes of its rows."""
    lines = [_HEAD, *(cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    text = [_line(line, widths) for line in lines]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    notes = [f"- {row.name}: {row.note}" for row in rows if row.note]
    return "\n".join([*text, *(["", *notes] if notes else [])])


def _line(line: Sequence[str], widths: Sequence[int]) -> str:
    wordy = {0, 1, len(widths) - 2, len(widths) - 1}
    padded = (
        text.ljust(width) if column in wordy else text.rjust(width)
        for column, (text, width) in enumerate(zip(line, widths, strict=True))
    )
    return "| " + " | ".join(padded) + " |"


def as_object(rows: Sequence[Row], about: Mapping[str, object]) -> dict[str, object]:
    """The same for programs: `{"about": {...}, "rows": [...]}`; what is not known is null."""
    return {"about": dict(about), "rows": [_entry(row) for row in rows]}


def _entry(row: Row) -> dict[str, object]:
    return {
        "figure": row.name,
        "unit": row.unit,
        "medians": {str(who): _known(value) for who, value in row.figures.items()},
        "compared": _known(row.found),
        "target": row.target.words() if row.target else None,
        "bound": row.target.bound if row.target else None,
        "against": str(row.target.against) if row.target and row.target.against else None,
        "kept": row.kept,
        "note": row.note or None,
    }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
