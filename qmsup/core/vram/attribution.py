"""Whose the GPU memory is: what each of our children holds, and what is left for everybody else.

A number that is only half known is worse than none: what one of our own children holds would be taken for a game's,
and the models would shrink for it. So a sample is trusted whole or not at all.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from qmsup.core.vram.floor import JITTER
from qmsup.core.vram.sample import Card, Sample, Use
from qmsup.ids import Incarnation
from qmsup.units import MiB

_WORKS_WITH = MiB(64)
"""Who holds less of an integrated GPU only looked at it: Vulkan opens every device there is. No model is so small."""


class Stage(StrEnum):
    """Where a child is in its life."""

    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """One of our children, whose end has not been heard of.

    Attributes:
        is_on_gpu: it is to be seen on a card; one of the RAM pool need not be.
        was_seen: it was, with a value, by an earlier sample.
        size: what it is expected to hold in the end; 0 = unknown.
    """

    incarnation: Incarnation
    stage: Stage
    is_on_gpu: bool = True
    was_seen: bool = False
    size: MiB = MiB(0)


class Trust(StrEnum):
    """What a sample is worth."""

    GOOD = "good"
    OPEN = "open"
    """A child comes or goes and is not seen yet, or any more, or was read at another moment than the card it goes from:
    the next sample tells, the last one counts till then."""
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One card, and what all of our children were seen to hold there; None = not known."""

    card: Card
    ours: MiB | None

    @property
    def is_too_much(self) -> bool:
        """Whether ours hold more of it than is in use, or than it has, which cannot be."""
        most = self.card.total if self.card.used is None else min(self.card.used, self.card.total)
        return self.ours is not None and self.ours - most >= JITTER

    @property
    def others(self) -> MiB | None:
        """What is used of it by none of our living children; None = not known."""
        if self.card.used is None or self.ours is None:
            return None
        return MiB(max(0, self.card.used - self.ours))


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """A sample, shared out.

    Attributes:
        because: why it is not good, in a sentence for people; "" when it is.
        cards: by uuid; of others nothing can be compared with this.
        shares: of each card.
        total: of all cards.
        used: of all cards, by whomever; None = not known.
        held: by our children that were seen with a value.
    """

    trust: Trust
    because: str = ""
    cards: frozenset[str] = frozenset()
    shares: tuple[Share, ...] = ()
    total: MiB = MiB(0)
    used: MiB | None = None
    held: Mapping[Incarnation, MiB] = field(default_factory=dict)

    @property
    def free(self) -> MiB | None:
        """What nobody uses; None = not known."""
        return None if self.used is None else MiB(max(0, self.total - self.used))

    @property
    def others(self) -> MiB:
        """What is used by none of our living children. Only of a sample whose use is known."""
        assert self.used is not None, "without a reading nothing is shared out"
        return MiB(max(0, self.used - sum(self.held.values())))

    @property
    def others_of(self) -> dict[str, MiB]:
        """The same of each card whose use is known."""
        known = ((share.card.uuid, share.others) for share in self.shares)
        return {uuid: others for uuid, others in known if others is not None}

    @property
    def contradicts(self) -> bool:
        """Whether it cannot be as it says: nothing is to be learnt of it, not even what a child holds."""
        return any(share.is_too_much for share in self.shares)


def attribute(
    sample: Sample, residents: Iterable[Resident], owners: Mapping[int, Incarnation]
) -> Attribution:
    """Share a sample out.

    Args:
        sample: what was read.
        residents: our children, whether they use a card or not.
        owners: whose the processes of the sample are, by pid; those that are not ours are not in it.
    """
    sample = _counted(sample, owners)
    held, hidden = _held(sample, owners)
    used = _used(sample)
    shares = tuple(_shares(sample, owners))
    trust, because = _judge(sample, used, residents, held, hidden)
    if trust is Trust.GOOD and (too_much := [s.card.name for s in shares if s.is_too_much]):
        trust = Trust.OPEN
        because = f"models hold more of {', '.join(too_much)} than is in use there, or than it has"
    return Attribution(
        trust=trust,
        because=because,
        cards=frozenset(card.uuid for card in sample.cards),
        shares=shares,
        total=MiB(sum(card.total for card in sample.cards)),
        used=used,
        held=held,
    )


def _counted(sample: Sample, owners: Mapping[int, Incarnation]) -> Sample:
    """Without integrated GPUs, where there is a card too and nothing of ours works on them.

    They show the desktop, and what is free there is of no use to who wants a card.
    """
    ours = {use.card for use in sample.uses if use.pid in owners and _works(use)}
    cards = [card for card in sample.cards if not card.is_integrated or card.uuid in ours]
    if not cards or len(cards) == len(sample.cards):
        return sample
    names = {card.uuid for card in cards}
    uses = tuple(use for use in sample.uses if use.card in names)
    return replace(sample, cards=tuple(cards), uses=uses)


def _works(use: Use) -> bool:
    return use.used is None or use.used >= _WORKS_WITH


def _held(
    sample: Sample, owners: Mapping[int, Incarnation]
) -> tuple[dict[Incarnation, MiB], set[Incarnation]]:
    """What each child holds on all cards, by all of its processes; and those of whom some is not known."""
    held: dict[Incarnation, MiB] = {}
    hidden: set[Incarnation] = set()
    for use in sample.uses:
        owner = owners.get(use.pid)
        if owner is None:
            continue
        if use.used is None:
            hidden.add(owner)
        else:
            held[owner] = MiB(held.get(owner, 0) + use.used)
    return {owner: size for owner, size in held.items() if owner not in hidden}, hidden


def _shares(sample: Sample, owners: Mapping[int, Incarnation]) -> Iterator[Share]:
    ours = [use for use in sample.uses if use.pid in owners]
    for card in sample.cards:
        held = sum(use.used for use in ours if use.card == card.uuid and use.used is not None)
        yield Share(card=card, ours=MiB(held))


def _used(sample: Sample) -> MiB | None:
    known = [card.used for card in sample.cards if card.used is not None]
    return MiB(sum(known)) if known and len(known) == len(sample.cards) else None


def _judge(
    sample: Sample,
    used: MiB | None,
    residents: Iterable[Resident],
    held: Mapping[Incarnation, MiB],
    hidden: set[Incarnation],
) -> tuple[Trust, str]:
    if not sample.cards:
        return Trust.NONE, "no GPU can be read"
    if used is None:
        dark = ", ".join(card.name for card in sample.cards if card.used is None)
        return Trust.NONE, f"how much of {dark} is used cannot be read"
    expected = [r for r in residents if r.is_on_gpu or r.incarnation in hidden]
    dark = ", ".join(card.name for card in sample.cards if not card.has_processes)
    if expected and dark:
        return Trust.NONE, f"which process uses how much of {dark} cannot be read"
    unseen = [r for r in expected if r.incarnation not in held]
    lost = [r for r in unseen if r.stage is Stage.READY]
    if lost:
        return Trust.NONE, f"not seen on any card: {_named(lost)}"
    # One that stops and was seen before has given its memory up already: it holds nothing.
    doubtful = [r for r in unseen if r.stage is Stage.STARTING or not r.was_seen]
    if doubtful:
        return Trust.OPEN, f"not seen on any card yet: {_named(doubtful)}"
    return Trust.GOOD, ""


def _named(residents: list[Resident]) -> str:
    return ", ".join(f"child {resident.incarnation}" for resident in residents)
