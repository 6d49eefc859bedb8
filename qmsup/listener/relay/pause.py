"""A pause before something is tried again, which is tried no more once things have changed."""

from collections.abc import Callable

from qmsup.listener.relay.loop import Loop
from qmsup.units import Seconds


class Pause:
    """One at a time: what begins later takes the place of what was begun before."""

    __slots__ = ("_loop", "_until")

    def __init__(self, loop: Loop) -> None:
        """None has begun."""
        self._loop = loop
        self._until = 0.0

    def begin(self, lasts: Seconds, then: Callable[[], None]) -> None:
        """Have `then` called after it; that is to ask `is_over` first."""
        self._until = self._loop.now + lasts
        self._loop.after(lasts, then)

    def drop(self) -> None:
        """What was to come after it is not to be done any more."""
        self._until = 0.0

    def is_over(self) -> bool:
        """Whether it is time, for the pause that was begun last; that is so once."""
        if not 0.0 < self._until <= self._loop.now:
            return False
        self._until = 0.0
        return True
