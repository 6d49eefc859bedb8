"""What was read of the memory: events of a kind, see `events`."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from qmsup.core.scheduling.messages import message
from qmsup.ids import Incarnation, ModelId
from qmsup.units import MiB


@message
class CeilingChanged:
    """A reading of the GPU memory that differs from the one before it, or the end of trust in readings.

    Attributes:
        ceiling: what all our models may use together right now; None = nothing but the budget is known.
        free: what is free on the cards; None = no reading can be trusted, and `held` says nothing.
        held: what each of our children holds, by incarnation.
        shed_line: more than this all our models may not hold for long; None = as long as they like.
        ram_ceiling: what they may use together of the machine's memory; None = nothing but the budget is known.
    """

    ceiling: MiB | None = None
    free: MiB | None = None
    held: Mapping[Incarnation, MiB] = field(default_factory=dict)
    shed_line: MiB | None = None
    ram_ceiling: MiB | None = None


@message
class MemoryReturned:
    """Some of what a child held before it ended is free again.

    Attributes:
        returned: of its memory, since its end, in all.
        free, held: what is free on the cards, and what each child that was seen holds, by the same reading.
    """

    model: ModelId
    incarnation: Incarnation
    returned: MiB
    free: MiB
    held: Mapping[Incarnation, MiB] = field(default_factory=dict)


@message
class MemoryRead:
    """What was asked for by ReadMemory is done: what has changed since was told before this, if it can be read."""


class SeenBy(StrEnum):
    """How a child's use of memory became known."""

    TELEMETRY = "telemetry"
    LOAD_LOG = "load log"


@message
class FootprintMeasured:
    """What a child was seen to use at most; it counts once the child has served something.

    Attributes:
        argv: what it was started with: only such starts are sized by it.
        incarnation: whose peak it is; None = remembered from a former life of the scheduler, and it counts.
        peak: on the GPU; 0 says nothing.
        ram: of the box's memory; 0 says nothing. It is shown, and decides nothing.
    """

    model: ModelId
    argv: tuple[str, ...]
    peak: MiB
    incarnation: Incarnation | None = None
    ram: MiB = MiB(0)
    seen_by: SeenBy = SeenBy.TELEMETRY
