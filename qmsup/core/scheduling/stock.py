"""The records of the GPU memory: what is free and held, what is on its way, what was refused for want of it."""

from dataclasses import dataclass, field

from qmsup.core.scheduling.deadlines import Alarm
from qmsup.core.vram.watchdog import Watch
from qmsup.errors import Refusal
from qmsup.ids import Incarnation, ModelId
from qmsup.units import MiB, Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Memo:
    """A model found no room on the GPU.

    Attributes:
        free: what was free then; if it grows, the refusal stands no longer.
        within_reach: that, and what our children held; it grows too when a game ends while they take what it had.
    """

    refusal: Refusal
    until: Seconds
    free: MiB
    within_reach: MiB


@dataclass(slots=True, eq=False)
class Returning:
    """The memory of a child that has ended, on its way back.

    Attributes:
        held: by the last reading before its end.
        returned: of that.
        unseen: of that, what no reading has shown to be taken: it still counts as free.
        alarm: when it is waited for no longer.
    """

    incarnation: Incarnation
    held: MiB
    returned: MiB = MiB(0)
    unseen: MiB = MiB(0)
    alarm: Alarm | None = None

    @property
    def left(self) -> MiB:
        """What is not back yet."""
        return MiB(max(0, self.held - self.returned))

    @property
    def is_mostly_back(self) -> bool:
        """Three quarters of it are."""
        return self.returned * 4 >= self.held * 3


@dataclass(slots=True, eq=False)
class Taking:
    """The memory that a child took while it was loaded, as far as no reading shows it yet.

    Attributes:
        left: of its size, beyond what the last reading saw it hold.
        alarm: when it is believed without a reading.
    """

    incarnation: Incarnation
    left: MiB
    alarm: Alarm | None = None


@dataclass(slots=True, eq=False)
class Looking:
    """A reading has been asked for.

    Attributes:
        alarm: when it is waited for no longer.
        proves: the children that had given their first answer by then.
    """

    alarm: Alarm | None = None
    proves: set[Incarnation] = field(default_factory=set)


@dataclass(slots=True)
class Memory:
    """The GPU memory by the newest reading.

    Attributes:
        ceiling: what all our models may use together; None = nothing but the budget is known.
        free: None = no reading can be trusted.
        held: by each of our children.
        returning: what children that ended held.
        shed_line: more than this our children may not hold for long; None = as long as they like.
        ram_ceiling: of the machine's memory; None = nothing but its budget is known.
        taking: what children that became ready since that reading took.
        footprints: what a model with these arguments was measured to take.
        read_at: when the newest reading came. One that says nothing new is told only to who asked for it.
        looking: a reading that was asked for.
        seen_whole: those of them that telemetry saw. A load log tells less: not what the driver takes for itself.
        unproven: children whose use is to be read once more, now that they have answered.
    """

    ceiling: MiB | None = None
    free: MiB | None = None
    held: dict[Incarnation, MiB] = field(default_factory=dict)
    shed_line: MiB | None = None
    ram_ceiling: MiB | None = None
    returning: dict[Incarnation, Returning] = field(default_factory=dict)
    taking: dict[Incarnation, Taking] = field(default_factory=dict)
    footprints: dict[tuple[ModelId, tuple[str, ...]], MiB] = field(default_factory=dict)
    seen_whole: set[tuple[ModelId, tuple[str, ...]]] = field(default_factory=set)
    read_at: Seconds = Seconds(float("-inf"))
    looking: Looking | None = None
    unproven: set[Incarnation] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class Guard:
    """Whether our children hold more GPU memory than others leave them, and since when.

    Attributes:
        alarm: when something is done about it.
    """

    watch: Watch = field(default_factory=Watch)
    alarm: Alarm | None = None
