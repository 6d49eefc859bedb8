"""What was read of the memory at one moment, in plain values. What could not be read is None, and never made up."""

from dataclasses import dataclass

from qmsup.units import MiB


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One GPU.

    Attributes:
        uuid: what names it for good, across reboots and other cards' coming and going.
        name: for people.
        total: its memory; of an integrated GPU, what it may take of the machine's.
        used: by whatever runs on it; None = not known.
        has_processes: who uses how much of it can be read at all (not so in some containers and drivers).
        is_integrated: its memory is the machine's.
    """

    uuid: str
    name: str
    total: MiB
    used: MiB | None = None
    has_processes: bool = False
    is_integrated: bool = False

    @property
    def free(self) -> MiB | None:
        """What nobody uses; None = not known."""
        return None if self.used is None else MiB(max(0, self.total - self.used))


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One process on one card.

    Attributes:
        used: None = it is there, but how much it uses could not be read.
    """

    pid: int
    card: str
    used: MiB | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ram:
    """The machine's memory, or as much of it as its container may use.

    Attributes:
        available: what can be taken without swapping.
    """

    total: MiB
    available: MiB


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One look at everything.

    Attributes:
        cards: none = no GPU, or none that can be read.
        uses: every process seen on them.
        ram: None = not known.
    """

    cards: tuple[Card, ...] = ()
    uses: tuple[Use, ...] = ()
    ram: Ram | None = None
