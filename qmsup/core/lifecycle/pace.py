"""How often a starting child is asked whether it is ready."""

from collections.abc import Collection, Iterable

from qmsup.units import Seconds

_FIRST = Seconds(0.008)
"""No server is up sooner."""
_QUICKEST = Seconds(0.001)
_SLOWEST = Seconds(0.025)
_SHARE = 0.05
"""Of the time so far: a tiny model is seen in 1 or 2 ms, any other in 25. A probe costs each side 0.2 ms."""
_NOT_BEFORE = 0.9
"""Of the quickest of the last starts."""
_REMEMBERED = 4
"""Starts. One that was slow by chance must not have the next seen late."""


def pause(so_far: Seconds, took: Collection[Seconds] = ()) -> Seconds:
    """How long to wait for the next question.

    Args:
        so_far: since the program was started.
        took: what the last starts took until ready; before that a question is rarely worth what it costs, while the
            child loads. A start that is quicker all the same is seen as late as the start of a large model.
    """
    usual = max(_FIRST - so_far, _QUICKEST, so_far * _SHARE)
    left = min(took, default=0.0) * _NOT_BEFORE - so_far
    return Seconds(min(max(usual, left), _SLOWEST))


def remembered(took: Iterable[Seconds], latest: Seconds) -> tuple[Seconds, ...]:
    """What the last starts took, with one more."""
    return (*took, latest)[-_REMEMBERED:]
