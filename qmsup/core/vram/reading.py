"""What goes into the gauge and comes out of it: a look at everything, what it means, and the news in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from qmsup.core.vram.attribution import Resident, Share
from qmsup.core.vram.sample import Sample
from qmsup.ids import Incarnation
from qmsup.units import MiB, Seconds

NOTHING_YET = "no sample was taken yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the operator says about it.

    Attributes:
        budget: for all models on all cards; None = the cards' total.
        ram_budget: of the machine's memory; None = nothing is held to one, so nobody asks for its ceiling.
        reserve: see `ceiling`.
        settle: so long the memory of a child that ended is waited for.
    """

    budget: MiB | None = None
    ram_budget: MiB | None = None
    reserve: MiB = MiB(1024)
    settle: Seconds = Seconds(3.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildRam:
    """The machine's memory that a child uses, by all of its processes.

    Attributes:
        resident: with the files it has mapped, which others may share.
        private: without them: what its end gives back.
    """

    resident: MiB
    private: MiB


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """All that is seen at one moment.

    Attributes:
        sample: None = none could be taken.
        trouble: why not.
        residents: our children.
        owners: whose the sample's processes are, by pid.
        ram: what the children use of the machine's memory.
    """

    sample: Sample | None = None
    trouble: str = ""
    residents: tuple[Resident, ...] = ()
    owners: Mapping[int, Incarnation] = field(default_factory=dict)
    ram: Mapping[Incarnation, ChildRam] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a sample means. What is not known is None.

    Attributes:
        because: why it cannot be trusted; "" = it can.
        total, used, free: of all cards; also of a sample that cannot be trusted, as far as it was read.
        foreign: used by others; floor: of that, what they use when nothing is the matter.
        ceiling: what all our models may use together.
        shed_line: what they may hold before some are unloaded.
        held: by each child.
        shares: of each card; what ours hold of it only where it can be trusted.
        ram_total, ram_available: of the machine.
        ram_ceiling: what all our models may use of it together.
        ram: by each child.
    """

    because: str = NOTHING_YET
    total: MiB | None = None
    used: MiB | None = None
    free: MiB | None = None
    foreign: MiB | None = None
    floor: MiB | None = None
    ceiling: MiB | None = None
    shed_line: MiB | None = None
    held: Mapping[Incarnation, MiB] = field(default_factory=dict)
    shares: tuple[Share, ...] = ()
    ram_total: MiB | None = None
    ram_available: MiB | None = None
    ram_ceiling: MiB | None = None
    ram: Mapping[Incarnation, ChildRam] = field(default_factory=dict)

    @property
    def is_trusted(self) -> bool:
        """Whether it may be decided by."""
        return not self.because


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """The newest reading differs from what was told last, in what is decided by."""

    reading: Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Back:
    """More of what a child held before its end is free: so much in all.

    Attributes:
        free, held: what is free by then, and what each child holds that was seen.
    """

    incarnation: Incarnation
    returned: MiB
    free: MiB
    held: Mapping[Incarnation, MiB]


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """A child was never seen to hold so much."""

    incarnation: Incarnation
    held: MiB


News = Changed | Back | Peak
