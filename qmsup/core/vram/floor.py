"""The floor: what others use of the cards when nothing is the matter, such as a desktop. Only growth counts."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from qmsup.units import MiB, mib_from_gb

JITTER = mib_from_gb(0.25)
"""Less growth than this is none: a browser tab more must not cost the whole reserve."""


def growth(foreign: MiB, floor: MiB) -> MiB:
    """How far others' use has grown over the floor; little of it counts as nothing."""
    grown = MiB(foreign - floor)
    return grown if grown >= JITTER else MiB(0)


def steadied(foreign: MiB, before: MiB, moved: MiB) -> MiB:
    """What others use, while our own children take memory or give it back.

    A card's use and its processes' are not read in the same moment, so what a child has taken in between looks like
    others' doing. As far as that may be so, others use what they used before.

    Args:
        foreign: as read.
        before: by the look before.
        moved: by how much our own use differs from that look.
    """
    return MiB(min(foreign + moved, max(foreign - moved, before)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The lowest use by others that a trusted sample showed. Samples that are not trusted leave it as it is.

    So do those in which our own children take memory or give it back: see `steadied`. One too low would never mend.

    Attributes:
        lowest: for each set of cards that was seen together, by uuid: with a card more there is more to use.
    """

    lowest: Mapping[frozenset[str], MiB] = field(default_factory=dict)

    def after(self, cards: frozenset[str], foreign: MiB) -> "Floor":
        """One trusted sample more."""
        known = self.lowest.get(cards)
        if known is not None and known <= foreign:
            return self
        return replace(self, lowest={**self.lowest, cards: foreign})
