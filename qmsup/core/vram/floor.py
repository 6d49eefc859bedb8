"""The floor: what others use of the cards when nothing is the matter, such as a desktop. Only growth counts."""

from collections.abc import Iterator, Mapping
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
        lowest: for each set of cards that was seen together, by uuid: with a card more there is more to use. A set
            that was not seen before begins with what is known of its cards: a game that runs by then is none of it.
    """

    lowest: Mapping[frozenset[str], MiB] = field(default_factory=dict)

    def after(
        self, cards: frozenset[str], foreign: MiB, each: Mapping[str, MiB] | None = None
    ) -> "Floor":
        """One trusted sample more.

        Args:
            cards: which are seen.
            foreign: what others use of them all.
            each: what they use of each, by uuid, as read.
        """
        known = self.lowest.get(cards)
        lowest = min(
            [foreign, *self._beginnings(cards, each or {})] if known is None else [foreign, known]
        )
        return self if lowest == known else replace(self, lowest={**self.lowest, cards: lowest})

    def _beginnings(self, cards: frozenset[str], each: Mapping[str, MiB]) -> Iterator[MiB]:
        """What others use at most when nothing is the matter, by each set that has a card in common with this one.

        Of cards that were seen with others it is no more than of all of those, and of the rest what they use now.
        """
        for before, lowest in self.lowest.items():
            if cards & before:
                yield MiB(lowest + sum(each.get(card, MiB(0)) for card in cards - before))
