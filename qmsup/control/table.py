"""Tables: by rich on a terminal, plain columns for a file or a pipe, where nothing is ever cut short."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import click

from qmsup.units import MiB, Seconds

NOTHING = "-"
"""Stands where a value is not known or does not apply."""

_STYLES = {"ready": "green", "starting": "yellow", "stopping": "yellow", "failed": "red"}


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, and whether its values are numbers, which end on the right."""

    heading: str
    is_number: bool = False


def show(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on stdout."""
    if sys.stdout.isatty():
        _show_rich(columns, rows)
    else:
        _show_plain(columns, rows)


def text_of(value: str | float | None) -> str:
    """A value as a cell."""
    return NOTHING if value is None or value == "" else str(value)


def memory(size: MiB | int | None) -> str:
    """MiB as a person reads it: `812M`, `5.2G`."""
    if size is None:
        return NOTHING
    return f"{size}M" if size < 1024 else f"{size / 1024:.1f}G"  # noqa: PLR2004 - MiB in a GiB


def duration(seconds: Seconds | float | None) -> str:
    """Seconds as a person reads them: `12s`, `3m05s`, `2h07m`, `4d11h`."""
    if seconds is None:
        return NOTHING
    minutes, s = divmod(max(0, int(seconds)), 60)
    hours, m = divmod(minutes, 60)
    days, h = divmod(hours, 24)
    if days:
        return f"{days}d{h:02d}h"
    if hours:
        return f"{hours}h{m:02d}m"
    return f"{minutes}m{s:02d}s" if minutes else f"{s}s"


def _show_plain(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    lines = [[column.heading for column in columns], *rows]
    widths = [max(len(line[n]) for line in lines) for n in range(len(columns))]
    for line in lines:
        cells = [
            cell.rjust(width) if column.is_number else cell.ljust(width)
            for cell, width, column in zip(line, widths, columns, strict=True)
        ]
        click.echo("  ".join(cells).rstrip())


def _show_rich(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(
            column.heading, justify="right" if column.is_number else "left", overflow="fold"
        )
    for row in rows:
        # Text, so that a name with brackets is not taken for markup.
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    Console().print(table)
