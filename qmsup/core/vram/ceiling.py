"""How much our models may use together, as others' use of the cards leaves it."""

from collections.abc import Iterable

from qmsup.core.vram.floor import growth
from qmsup.core.vram.sample import Ram
from qmsup.units import MiB, mib_from_gb

SLACK = mib_from_gb(0.5)
"""So much too much is borne: drivers and allocators are not exact."""


def budget_of(configured: MiB | None, total: MiB) -> MiB:
    """What all models may use on all cards together when nothing is the matter.

    Args:
        configured: by the operator; None = he said nothing.
        total: of all cards.
    """
    return configured or total


def promised_beyond(configured: MiB | None, *, total: MiB, floor: MiB) -> MiB:
    """How much of a configured budget the cards have not, even when nothing is the matter; 0 = they have it all.

    What fits such a budget may find no room all the same, and is refused instead of making room.
    """
    beyond = MiB((configured or 0) - (total - floor))
    return beyond if beyond >= SLACK else MiB(0)


def live_ceiling(budget: MiB, *, foreign: MiB, floor: MiB, reserve: MiB) -> MiB:
    """The budget, tightened by what others have taken since nothing was the matter.

    Growth counts, not free memory: a card that is full of our own models is healthy and keeps its whole budget.

    Args:
        budget: see `budget_of`.
        foreign: what others use now.
        floor: what they use at least; see `floor`.
        reserve: kept back as soon as anything has grown: what grows tends to go on.

    Returns:
        MiB in `0..budget`.
    """
    grown = growth(foreign, floor)
    return MiB(max(0, budget - grown - reserve)) if grown else budget


def shed_line(budget: MiB, *, foreign: MiB, floor: MiB) -> MiB:
    """What our models may hold before some are unloaded: not to the MiB, and the reserve is for new loads alone."""
    return MiB(max(0, budget - growth(foreign, floor)) + SLACK)


def ram_ceiling(ram: Ram, private: Iterable[MiB]) -> MiB:
    """What our models may use of the machine's memory together: what is left, and what they have of it now.

    Args:
        ram: of the machine, or its container.
        private: what each of our processes would give back. Files it has mapped are not in it: the memory they take
            can be had at any time, so it is among what is available already.
    """
    return MiB(min(ram.total, ram.available + sum(private)))
