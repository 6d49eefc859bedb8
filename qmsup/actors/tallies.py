"""Counts and spreads, by metric and label values: plain numbers that one thread keeps and may hand on as a copy."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from qmsup.actors.metrics import Metric

_MOST_SERIES = 2000
"""Of one metric. What comes after is counted together: a label is never a way to fill the memory."""
_OTHERS = "other"

Labels = tuple[str, ...]


@dataclass(slots=True)
class Spread:
    """How often a value fell between which bounds.

    Attributes:
        bounds: upper ones, each belonging to what it bounds, from small to large.
        counts: one more than bounds: the last is of what is larger than all.
        total: of all values.
    """

    bounds: Sequence[float]
    counts: list[int]
    total: float = 0.0

    def observe(self, value: float) -> None:
        """Another value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


@dataclass(slots=True)
class Tallies:
    """See the module. For one thread.

    Attributes:
        counts, spreads: by the metric's name, then by label values.
    """

    counts: dict[str, dict[Labels, float]] = field(default_factory=dict)
    spreads: dict[str, dict[Labels, Spread]] = field(default_factory=dict)

    def count(self, metric: Metric, *labels: str, by: float = 1) -> None:
        """Add to a count."""
        series = self.counts.setdefault(metric.name, {})
        if labels not in series and len(series) >= _MOST_SERIES:
            labels = (_OTHERS,) * len(labels)
        series[labels] = series.get(labels, 0) + by

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        """Add a value to a spread."""
        series = self.spreads.setdefault(metric.name, {})
        spread = series.get(labels)
        if spread is None:
            if len(series) >= _MOST_SERIES:
                labels = (_OTHERS,) * len(labels)
            new = Spread(metric.bounds, [0] * (len(metric.bounds) + 1))
            spread = series.setdefault(labels, new)
        spread.observe(value)

    def copy(self) -> "Tallies":
        """As they stand, for another thread."""
        return Tallies(
            counts={metric: dict(series) for metric, series in self.counts.items()},
            spreads={
                metric: {
                    labels: Spread(spread.bounds, list(spread.counts), spread.total)
                    for labels, spread in series.items()
                }
                for metric, series in self.spreads.items()
            },
        )
