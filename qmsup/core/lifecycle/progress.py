"""Whether a ready child gets on with its work, though it answers. Pure, as the machine it is a part of.

Where a GPU or its driver hangs, the rest of a server lives on: it accepts requests, says that it is well, and no token
comes. llama-server answers `GET /slots` between two batches, by the thread that computes. So as long as that question
has no answer one batch has lasted, however many requests wait; and where nothing is computed it is answered at once.

A batch takes seconds on a GPU. It may take many minutes where the CPU does the work, or the model is read from disk
meanwhile, but then both are seen at work. What hangs in a driver call sleeps, or spins in one thread. So a hang is: one
batch for a quarter of an hour, by a program that uses a GPU, with no more CPU time than one thread's and nothing read.
"""

from dataclasses import dataclass
from enum import StrEnum

from qmsup.units import Seconds

ASK_EVERY = Seconds(60.0)
LOOK_AFTER = Seconds(60.0)
"""A question without an answer for so long is worth a look at what the child does."""
STALLED_AFTER = Seconds(900.0)
"""From that look on. A batch of 2048 tokens would go on with less than three a second."""
_THREADS = 1.25
"""Less CPU time than so many threads have is what one uses that only waits, with what others do besides."""
_BYTES_PER_SECOND = 1024 * 1024
"""Less than this is no model that is being read; log lines are less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """What a child has used up to one moment, all of its processes together.

    Attributes:
        cpu: CPU time.
        moved: bytes read and written.
        uses_gpu: it holds a GPU's device open.
        is_held: a debugger or a signal keeps it from running.
    """

    cpu: Seconds
    moved: int
    uses_gpu: bool
    is_held: bool = False


class Step(StrEnum):
    """What is to be done now."""

    ASK = "ask"
    """Ask for its slots, and wait for the answer however long it takes."""
    LOOK = "look"
    """See what it has used, and tell `looked`."""


class Progress:
    """The questions to one ready child."""

    __slots__ = ("_first", "_is_asked", "due")

    def __init__(self, now: Seconds) -> None:
        """Of a child that became ready just now."""
        self.due: Seconds | None = Seconds(now + ASK_EVERY)
        """When `step` has something to say; None = never, or once an answer or a look is told."""
        self._is_asked = False
        self._first: tuple[Seconds, Effort] | None = None

    def step(self, now: Seconds) -> Step | None:
        """What is due."""
        if self.due is None or now < self.due:
            return None
        if self._is_asked:
            self.due = None
            return Step.LOOK
        self._is_asked = True
        self.due = Seconds(now + LOOK_AFTER)
        return Step.ASK

    def answered(self, now: Seconds) -> None:
        """It told of its slots, so it gets on; or it could not be asked this time."""
        self._is_asked, self._first = False, None
        self.due = Seconds(now + ASK_EVERY)

    def cannot_tell(self) -> None:
        """It does not answer such questions, and is asked no more."""
        self._is_asked, self.due = False, None

    def looked(self, effort: Effort, now: Seconds) -> str:
        """Take in what it has used while it did not answer; why it hangs, "" as long as it may not."""
        if self._first is not None:
            began, before = self._first
            lasting = Seconds(now - began)
            if not _is_at_work(before, effort, lasting):
                return (
                    f"the child hangs: it answers, but has computed one batch for {lasting / 60:.0f} minutes, and used"
                    " no more of the CPU than one thread meanwhile, as where a GPU or its driver hangs (see dmesg);"
                    " it was ended"
                )
        self._first = (now, effort)
        self.due = Seconds(now + STALLED_AFTER)
        return ""


def _is_at_work(before: Effort, after: Effort, lasting: Seconds) -> bool:
    return (
        after.is_held
        or not after.uses_gpu
        or after.cpu - before.cpu > _THREADS * lasting
        or after.moved - before.moved > _BYTES_PER_SECOND * lasting
    )
