"""Arithmetic of a measurement: medians, percentiles, and tallies over rounds. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class Who(StrEnum):
    """Who was measured."""

    DIRECT = "direct"
    ROUTER = "router"
    NGINX = "nginx"
    QMSUP = "qmsup"


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0..1) of all values do not exceed; nan for none."""
    if not values:
        return math.nan
    ranked = sorted(values)
    return ranked[max(0, math.ceil(share * len(ranked)) - 1)]


def median(values: Sequence[float]) -> float:
    """The middle value, of an even number the mean of the two in the middle; nan for none."""
    if not values:
        return math.nan
    ranked = sorted(values)
    half = len(ranked) // 2
    return ranked[half] if len(ranked) % 2 else (ranked[half - 1] + ranked[half]) / 2


def ratio(ours: float, theirs: float) -> float:
    """`ours / theirs`; nan where either is unknown or theirs is no positive number to compare with."""
    if math.isnan(ours) or math.isnan(theirs) or theirs <= 0:
        return math.nan
    return ours / theirs


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How a set of times lies, in the unit of its values."""

    count: int
    p50: float
    p99: float
    most: float


def spread(values: Sequence[float]) -> Spread:
    """Count, median, 99th percentile and largest value; nan for what no value tells."""
    return Spread(
        count=len(values),
        p50=median(values),
        p99=percentile(values, 0.99),
        most=max(values, default=math.nan),
    )


@dataclass(slots=True)
class Tally:
    """The samples of one figure: for each peer one number a round."""

    rounds: dict[Who, list[float]] = field(default_factory=dict)

    def add(self, who: Who, value: float) -> None:
        """One more round's number; a nan (nothing measured) is left out."""
        if not math.isnan(value):
            self.rounds.setdefault(who, []).append(value)

    def median(self, who: Who) -> float:
        """The median over the rounds; nan when there was none."""
        return median(self.rounds.get(who, ()))

    def over(self, base: Who) -> "Tally":
        """What each peer adds to `base`, round by round: drift between rounds then cancels out."""
        ground = self.rounds.get(base, [])
        return Tally(
            {
                who: [value - under for value, under in zip(values, ground, strict=False)]
                for who, values in self.rounds.items()
                if who is not base
            }
        )

    def medians(self) -> Mapping[Who, float]:
        """The median of everyone who was measured."""
        return {who: median(values) for who, values in self.rounds.items()}
