"""Figures as people read them: by rich, as wide as the terminal; into a file or a pipe as wide as need be."""

import sys
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from qmsup.core.scheduling.effects import Record
from qmsup.simulation.figures import Figures, Report
from qmsup.units import Seconds

_NAMES = ("REQUESTS", "SERVED", "REFUSED", "LEFT", "LOADS")
_WAITS = ("P50", "P95", "MAX", "LOST", "STARVED", "BUSY")
_ENDLESS = 10_000
"""Columns: a table in a file is never folded."""


def show_report(report: Report) -> None:
    """One run: a line a model, one for all, and below what wants more words."""
    lines = {str(model): figures for model, figures in report.models.items()}
    _show("MODEL", lines | {"all": report.total})
    notes = [f"in {say_seconds(report.span)} of virtual time"]
    notes += [f"{model}: {text}" for model, figures in lines.items() for text in _remarks(figures)]
    if report.unasked:
        notes.append(f"{report.unasked} rounds were not asked: their agents had given up")
    _print("\n" + "\n".join(notes))


def show_comparison(reports: Mapping[str, Report]) -> None:
    """Several runs of one trace, a line each."""
    _show("CONFIG", {name: report.total for name, report in reports.items()})


def say_seconds(seconds: float) -> str:
    """Seconds, with the digits that matter."""
    if seconds >= 100:  # noqa: PLR2004 - then no one asks for tenths
        return f"{seconds:.0f} s"
    return f"{seconds:.1f} s" if seconds >= 10 else f"{seconds:.2f} s"  # noqa: PLR2004


def say_record(now: Seconds, record: Record) -> str:
    """One decision of the scheduler, a line."""
    said: dict[str, str | None] = {
        "model": record.model,
        "request": record.request,
        "evicts": ",".join(record.evicts),
        "because": record.because,
    }
    fields = "".join(f" {key}={value}" for key, value in said.items() if value)
    return f"+{now:10.3f} s  {record.decision:16}{fields}".rstrip()


def _show(heading: str, lines: Mapping[str, Figures]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(heading, overflow="fold")
    for name in (*_NAMES, *_WAITS):
        table.add_column(name, justify="right", overflow="fold")
    for name, figures in lines.items():
        # Text, so that a name with brackets is not taken for markup.
        table.add_row(*(Text(cell) for cell in (name, *_cells(figures))))
    _console().print(table)


def _cells(figures: Figures) -> Sequence[str]:
    wait = figures.wait
    return (
        str(figures.requests),
        str(sum(figures.served.values())),
        str(figures.unserved),
        str(figures.left),
        str(figures.loads),
        say_seconds(wait.p50),
        say_seconds(wait.p95),
        say_seconds(wait.longest),
        say_seconds(figures.lost),
        str(figures.starved),
        f"{figures.busy:.0%}",
    )


def _remarks(figures: Figures) -> list[str]:
    remarks = [f"{count} refused with {code}" for code, count in figures.refused.items()]
    remarks += [f"{count} cut with {code}" for code, count in figures.cut.items()]
    if figures.unanswered:
        remarks.append(f"{figures.unanswered} never answered")
    if figures.failed_loads or figures.aborted_loads:
        remarks.append(
            f"loads that failed: {figures.failed_loads}; that were given up: {figures.aborted_loads}"
        )
    return remarks


def _print(text: str) -> None:
    _console().print(text, markup=False, highlight=False, soft_wrap=True)


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else _ENDLESS)
