"""Whether a ready child still lives, though it may be too busy to answer. Pure, as the machine it is a part of.

A slow health answer proves nothing: under a burst of requests it may take a minute. What proves a hang is that nothing
moves: question after question without an answer, and between them not a tick of CPU time nor a byte read or written by
all of the child together. A child that somebody stopped (SIGSTOP) says so itself, and needs fewer questions.

What spins without end on its CPU looks busy to this, and is left alone: to kill a busy child would cost more.
"""

from dataclasses import dataclass

from qmsup.units import Seconds

ASK_EVERY = Seconds(10.0)
"""Of a child that answers. One question costs both sides some 0.2 ms."""
ANSWER_WITHIN = Seconds(3.0)
"""Also the pause between looks once something is amiss."""
_STOPPED_LOOKS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a child had done up to one moment.

    Attributes:
        done: grows with all CPU time it uses and all bytes it reads or writes; the unit is of no matter.
        is_stopped: a signal froze it.
        is_traced: a debugger holds it, and may do so for long.
    """

    done: int
    is_stopped: bool = False
    is_traced: bool = False


class Pulse:
    """The looks at one ready child."""

    __slots__ = ("_last", "_looks", "_silent_looks", "_silent_since")

    def __init__(self, silent_looks: int) -> None:
        """Of a child that answered just now.

        Args:
            silent_looks: so many looks without an answer, and without work between them, are a hang.
        """
        self._silent_looks = silent_looks
        self._looks = 0
        self._last: Work | None = None
        self._silent_since: Seconds | None = None

    @property
    def is_calm(self) -> bool:
        """Nothing is amiss as far as is known."""
        return self._looks == 0

    def beats(self) -> None:
        """It answered a question, whatever the answer."""
        self._looks = 0
        self._last = None
        self._silent_since = None

    def is_silent(self, work: Work, now: Seconds) -> str:
        """Take in what a child has done that did not answer; why it hangs, "" as long as it may not."""
        if self._silent_since is None:
            self._silent_since = now
        moves = work.is_traced or (self._last is not None and work.done != self._last.done)
        self._looks = 1 if moves else self._looks + 1
        self._last = work
        if self._looks < (_STOPPED_LOOKS if work.is_stopped else self._silent_looks):
            return ""
        silence = now - self._silent_since + ANSWER_WITHIN
        if work.is_stopped:
            return (
                f"the child hangs: a signal stopped it (SIGSTOP), and it answered nothing for {silence:.0f} s;"
                " it was ended"
            )
        return (
            f"the child hangs: it answered nothing for {silence:.0f} s and used neither CPU nor disk meanwhile;"
            " it was ended (see its log, and the GPU driver's)"
        )

    def is_only_watched(self, work: Work, now: Seconds) -> str:
        """The same for a child that cannot be asked anything: only a signal that stopped it can be seen."""
        if work.is_stopped:
            return self.is_silent(work, now)
        self.beats()
        return ""
