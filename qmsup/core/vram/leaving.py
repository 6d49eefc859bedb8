"""Memory of children that have gone, on its way back. A driver takes its time over that, and says nothing of it.

While it does, what is used by no living child may be a dead one's or somebody else's. It is taken for a dead one's as
far as it lies above what others used before, and no further than the dead one held.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from qmsup.ids import Incarnation
from qmsup.units import MiB, Seconds


@dataclass(slots=True, eq=False)
class Leaver:
    """A child whose memory comes back.

    Attributes:
        held: when it went, as far as others have been told.
        left: of that; more, where it was still taking memory when it was seen last.
        until: it is waited for no longer; what is left then is somebody else's. None = its end is still to be heard of.
        returned: as told last.
    """

    incarnation: Incarnation
    held: MiB
    left: MiB
    until: Seconds | None = None
    returned: MiB = MiB(0)


class Leaving:
    """Who leaves, the first to go first."""

    def __init__(self) -> None:
        self._leavers: dict[Incarnation, Leaver] = {}

    def __bool__(self) -> bool:
        """Whether anything is on its way back."""
        return bool(self._leavers)

    @property
    def is_owed(self) -> bool:
        """Whether some of it has not been seen to come back."""
        return any(leaver.left for leaver in self._leavers.values())

    def vanished(self, incarnation: Incarnation, held: MiB, most: MiB = MiB(0)) -> None:
        """A child that is being stopped is not seen on any card any more, or never was. Once is enough.

        Args:
            incarnation: which.
            held: when it was seen last.
            most: what it may have taken since.
        """
        if incarnation not in self._leavers and (held or most):
            self._leavers[incarnation] = Leaver(incarnation, held, max(held, most))

    def seen(self, incarnation: Incarnation) -> None:
        """A child that was not seen for a moment is there after all."""
        leaver = self._leavers.get(incarnation)
        if leaver is not None and leaver.until is None:
            del self._leavers[incarnation]

    def ended(
        self, incarnation: Incarnation, held: MiB, until: Seconds, most: MiB = MiB(0)
    ) -> None:
        """A child's end was heard of.

        Args:
            incarnation: which.
            held: when it was seen last.
            until: so long its memory is waited for.
            most: what it may have taken since.
        """
        is_known = incarnation in self._leavers
        self.vanished(incarnation, held, most)
        leaver = self._leavers.get(incarnation)
        if leaver is not None and leaver.until is None:
            leaver.until = until
            leaver.held = leaver.left if is_known else held

    def foreign_of(self, others: MiB, before: MiB | None) -> MiB:
        """What others use, once the dead have their share of what no living child uses.

        Args:
            others: used by no living child.
            before: what others used by the sample before; None = there was none, so nothing is known of them.
        """
        if before is None:
            return others
        owed = sum(leaver.left for leaver in self._leavers.values())
        foreign = MiB(max(others - owed, min(others, before)))
        self._share_out(MiB(others - foreign))
        return foreign

    def left_of(self, incarnation: Incarnation) -> MiB:
        """What a child that has gone still has; 0 for any other."""
        leaver = self._leavers.get(incarnation)
        return MiB(0) if leaver is None else leaver.left

    def take_news(self) -> Iterator[tuple[Incarnation, MiB]]:
        """The dead of whom more has come back than was told, with all that has. Who has nothing left is forgotten."""
        for leaver in list(self._leavers.values()):
            returned = MiB(max(0, leaver.held - leaver.left))
            if leaver.until is not None and returned > leaver.returned:
                leaver.returned = returned
                yield leaver.incarnation, returned
            if leaver.until is not None and not leaver.left:
                del self._leavers[leaver.incarnation]

    def forget_overdue(self, now: Seconds) -> None:
        """Wait no longer for what should be back by now."""
        for leaver in list(self._leavers.values()):
            if leaver.until is not None and now >= leaver.until:
                del self._leavers[leaver.incarnation]

    def _share_out(self, remains: MiB) -> None:
        """What is left is of those who went last: what comes back is of those who went first."""
        for leaver in reversed(self._leavers.values()):
            leaver.left = MiB(min(leaver.left, remains))
            remains = MiB(remains - leaver.left)
