"""How the demo talks: a headline per step, what came of it below, and how long it took."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

_BOLD, _DIM, _PLAIN = ("\033[1m", "\033[2m", "\033[0m") if sys.stdout.isatty() else ("", "", "")


class DemoError(Exception):
    """The demo cannot go on; the text says what is wrong and what to do."""


@contextmanager
def step(headline: str) -> Iterator[None]:
    """Announce a step, and when it is over say how long it took."""
    began = time.monotonic()
    print(f"\n{_BOLD}{headline}{_PLAIN}", flush=True)
    yield
    print(f"{_DIM}    ({time.monotonic() - began:.2f} s){_PLAIN}", flush=True)


def say(text: str) -> None:
    """Lines that belong to the step under way."""
    for line in text.splitlines():
        print(f"    {line}", flush=True)


def trickle(pieces: Iterator[str]) -> None:
    """One line that grows as its pieces come."""
    print("    ", end="")
    is_first = True
    for piece in pieces:
        print(piece.lstrip() if is_first else piece, end="", flush=True)
        is_first = False
    print(flush=True)
