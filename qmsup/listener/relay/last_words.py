"""Why a child of this box broke off an answer: its connection ends first, what it ended of is known a moment later.

Whether it has ended at all cannot be asked meanwhile: one that holds a GPU may give back all else before the socket
that it listens on. So its last words are waited for, and not for long.
"""

from pathlib import Path

from qmsup.child_ends import found
from qmsup.places import log_file
from qmsup.spec import LOCAL
from qmsup.units import Seconds
from qmsup.wire.listening import Granted

LOOK_AGAIN = Seconds(0.02)
_WITHIN = Seconds(1.0)


class LastWords:
    """Of the child that one grant names."""

    __slots__ = ("_grant", "_log", "_until")

    def __init__(self, grant: Granted | None, now: float) -> None:
        """Nothing is waited for where there was no grant, or the child is another box's."""
        self._grant = None if grant is None or grant.host != LOCAL else grant
        self._until = now + _WITHIN
        # Hundreds of answers may wait for one child's: a path is dearer to make than a file is to look into.
        self._log = Path() if self._grant is None else log_file(self._grant.model)

    def look(self, now: float) -> str | None:
        """What it ended of, "" if nobody says so; None = look again."""
        if self._grant is None:
            return ""
        words = found(self._log, self._grant.incarnation)
        return words if words or now >= self._until else None
