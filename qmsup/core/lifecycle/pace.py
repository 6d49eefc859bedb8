"""How often a starting child is asked whether it is ready."""

from qmsup.units import Seconds

_FIRST = Seconds(0.008)
"""No server is up sooner."""
_QUICKEST = Seconds(0.001)
_SLOWEST = Seconds(0.025)
_SHARE = 0.05
"""Of the time so far: a tiny model is seen in 1 or 2 ms, any other in 25. A probe costs each side 0.2 ms."""


def pause(so_far: Seconds) -> Seconds:
    """How long to wait for the next question, `so_far` after the program was started."""
    return Seconds(min(max(_FIRST - so_far, _QUICKEST, so_far * _SHARE), _SLOWEST))
