"""The shape of what each kind of program brings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qmsup.processes.child import Exit


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What an end means.

    Attributes:
        hint: the cause and what to do, "" when it is not known.
        port_taken: another port may do.
    """

    hint: str = ""
    port_taken: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """One kind of program.

    Attributes:
        added_arguments: what a command needs that says nothing of it, and its `env` neither; takes these two, the port
            and the slots.
        meaning: what an end by itself means; takes the exit and the last lines of the log.
        tells_slots: it answers `GET /props` with `total_slots` once it is ready.
        tells_progress: it answers `GET /slots` between two batches, by the thread that computes.
        repeats_term: its first TERM may be lost, and a second one ends it at once.
        silent_looks: how often it may neither answer nor work until it counts as hanging. Few where the work is done
            by the program itself; many where it may wait for somebody elsewhere and do nothing meanwhile.
    """

    added_arguments: Callable[[Sequence[str], Sequence[str], int, int], tuple[str, ...]]
    meaning: Callable[[Exit, str], Meaning]
    tells_slots: bool = False
    tells_progress: bool = False
    repeats_term: bool = False
    silent_looks: int = 40


def is_silent_about(argv: Sequence[str], *flags: str) -> bool:
    """Whether a command holds none of these flags, neither as `--flag value` nor as `--flag=value`."""
    return not any(word == flag or word.startswith(f"{flag}=") for word in argv for flag in flags)
