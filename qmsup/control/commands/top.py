"""`qmsup top`: a box at a glance, kept up to date by the feed."""

import contextlib
import os
import select
import shutil
import sys
import termios
import time
import tty
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import click
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from qmsup.control import options
from qmsup.control.feed import Mirror, looking_on
from qmsup.control.overview import Line, lines_of
from qmsup.control.polled import PolledMirror
from qmsup.errors import AskTimedOutError, SchedulerUnavailableError
from qmsup.units import Seconds
from qmsup.wire.feed import KINDS, Item

_DECISIONS = 200
_TOPICS = tuple(f"{kind}." for kind in KINDS if kind != "activity")
_PLAIN = os.terminal_size((120, 1000))


@click.command("top")
@click.option("--plain", is_flag=True, help="Print text, also on a terminal.")
@click.option("--once", is_flag=True, help="Print one look as text, and end.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    default=1.0,
    show_default=True,
    metavar="S",
    help="Seconds between two looks.",
)
@options.where
def command(*, plain: bool, once: bool, interval: float) -> None:
    """Watch the box: models, memory, who waits and why, jobs, and what is decided.

    q or Ctrl-C ends it. Where stdout is no terminal, or with --plain, looks are printed as text, one after the other.
    """
    seen = looking_on(_TOPICS, door=options.door())
    with seen as mirror, contextlib.suppress(KeyboardInterrupt):
        view = _View(mirror)
        if once:
            _print(view)
        elif plain or not sys.stdout.isatty():
            while True:
                _print(view)
                click.echo()
                view.follow(interval)
        else:
            _watch(view, interval)


class _View:
    """What is shown, and what was decided lately."""

    def __init__(self, mirror: Mirror | PolledMirror) -> None:
        self._mirror = mirror
        self._decisions: deque[dict[str, Any]] = deque(mirror.decisions, maxlen=_DECISIONS)
        self._trouble = ""

    def follow(self, seconds: float) -> None:
        """Take in what changes in this time. A scheduler that is away is waited for."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            try:
                self._take(self._mirror.updates(Seconds(left)))
            except (SchedulerUnavailableError, AskTimedOutError) as error:
                self._trouble = str(error)
                time.sleep(left)

    def _take(self, items: list[Item]) -> None:
        if items:
            self._trouble = ""
        for item in items:
            if item.topic.startswith("decision."):
                self._decisions.append({"time": item.time, **item.body})

    def lines(self, size: os.terminal_size) -> list[Line]:
        """The screen, for a terminal of this size."""
        return lines_of(
            self._mirror.state,
            list(self._decisions),
            now=time.time(),
            width=size.columns,
            height=size.lines - 1,
        )

    @property
    def trouble(self) -> str:
        """Why what is shown is old; "" = it is not."""
        return self._trouble


def _print(view: _View) -> None:
    for line in view.lines(_PLAIN):
        click.echo("".join(part.text for part in line).rstrip())
    if view.trouble:
        click.echo(view.trouble)


def _watch(view: _View, interval: float) -> None:
    console = Console()
    with _keys() as is_over, Live(console=console, screen=True, auto_refresh=False) as live:
        while not is_over():
            live.update(_drawn(view), refresh=True)
            view.follow(min(interval, 0.5))


def _drawn(view: _View) -> Group:
    texts = [
        Text.assemble(*((part.text, part.style) for part in line), no_wrap=True, overflow="crop")
        for line in view.lines(shutil.get_terminal_size())
    ]
    if view.trouble:
        texts.insert(0, Text(view.trouble, "red", no_wrap=True, overflow="crop"))
    return Group(*texts)


@contextlib.contextmanager
def _keys() -> Iterator[Callable[[], bool]]:
    """Says whether q was pressed; keys are not echoed meanwhile."""
    if not sys.stdin.isatty():
        yield lambda: False
        return
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)

    def is_over() -> bool:
        while select.select([fd], [], [], 0)[0]:
            if os.read(fd, 1) in {b"q", b"Q", b""}:
                return True
        return False

    try:
        tty.setcbreak(fd)
        yield is_over
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
