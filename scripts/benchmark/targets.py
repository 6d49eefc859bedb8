"""What a figure is compared with, and what it should reach."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from scripts.benchmark.figures import Tally, Who, ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The bound a figure of qmsup should keep.

    Attributes:
        bound: The bound, in the figure's unit, or as a ratio when `against` is set.
        at_most: True when less is better.
        against: The peer the figure is divided by; None compares the figure itself.
    """

    bound: float
    at_most: bool = True
    against: Who | None = None

    def words(self) -> str:
        """`<= 0.9 x router` or `<= 8`."""
        sign = "<=" if self.at_most else ">="
        return f"{sign} {self.bound:g}" + (f" x {self.against}" if self.against else "")

    def judged(self, figures: Mapping[Who, float]) -> tuple[float, bool | None]:
        """The number that is compared with the bound, and whether it keeps it (None: not known)."""
        ours = figures.get(Who.QMSUP, math.nan)
        found = ratio(ours, figures.get(self.against, math.nan)) if self.against else ours
        if math.isnan(found):
            return found, None
        return found, found <= self.bound if self.at_most else found >= self.bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table: a figure, what each peer reached, and the target where there is one."""

    name: str
    unit: str
    figures: Mapping[Who, float]
    target: Target | None = None
    note: str = ""

    @property
    def found(self) -> float:
        """What is compared with the target; nan without one."""
        return self.target.judged(self.figures)[0] if self.target else math.nan

    @property
    def kept(self) -> bool | None:
        """Whether the target is kept; None when there is none or it cannot be told."""
        return self.target.judged(self.figures)[1] if self.target else None


def row(name: str, unit: str, tally: Tally, target: Target | None = None, note: str = "") -> Row:
    """The row of a tally: medians over its rounds."""
    return Row(name=name, unit=unit, figures=tally.medians(), target=target, note=note)
