"""How often a starting child is looked at, and when it is asked whether it is ready.

A look at what its leader does costs the child nothing; an answer costs it some 0.2 ms of the CPU that its load wants.
Who works is loading, and whoever got ready rests: so it is asked once it rests, and seldom while it works.
"""

from qmsup.units import Seconds

_FIRST = Seconds(0.008)
"""No server is up sooner."""
_QUICKEST = Seconds(0.001)
_SHARE = 0.05
"""Of the time so far: a tiny model is seen within a millisecond or two, any other within 25."""
_SLOWEST = Seconds(0.025)
_RESTING = Seconds(0.003)
_WORKING = Seconds(0.01)
_SELDOM = Seconds(0.25)
"""Who works and is ready all the same (it spins) is found out by this."""


class Pace:
    """Of one start."""

    __slots__ = ("_asked_at", "_began")

    def __init__(self, began: Seconds) -> None:
        """The program was started at `began`."""
        self._began = began
        self._asked_at = began

    def next_look(self, now: Seconds) -> Seconds:
        """When to look at it next."""
        so_far = now - self._began
        return Seconds(now + min(max(_FIRST - so_far, _QUICKEST, so_far * _SHARE), _SLOWEST))

    def asks(self, now: Seconds, *, is_at_work: bool) -> bool:
        """Whether it is to be asked now; if so, it counts as asked."""
        since = now - self._asked_at
        share = (now - self._began) * _SHARE
        patience = min(max(_WORKING, share), _SELDOM) if is_at_work else _RESTING
        if since < patience:
            return False
        self._asked_at = now
        return True
