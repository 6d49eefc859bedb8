"""How far a search has come, counted and shown."""

import time
from collections import Counter
from collections.abc import Callable


class Tally:
    """Counts by name, and now and then a line of them: no line per event, as there are millions."""

    def __init__(self, say: Callable[[str], None] = print, *, every_s: float = 10.0) -> None:
        self.counts: Counter[str] = Counter()
        self._say = say
        self._every_s = every_s
        self._started = time.monotonic()
        self._next_line = self._started + every_s

    def add(self, name: str, count: int = 1) -> None:
        """Count some more of a name, and show all when it is time."""
        self.counts[name] += count
        if time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + self._every_s
            self.show()

    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self._started

    def show(self) -> None:
        """A line of all counts; those with a rate that says something have it."""
        self._say(self.line())

    def line(self) -> str:
        """Such as `    70 s  412 histories  30500 steps (436/s)`."""
        seconds = self.seconds()
        words = [f"{seconds:6.0f} s"]
        for name, count in self.counts.items():
            rate = f" ({count / seconds:.0f}/s)" if name == "steps" and seconds else ""
            words.append(f"{count} {name}{rate}")
        return "  ".join(words)
