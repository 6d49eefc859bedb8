"""How often to look: often while memory moves, seldom while it does not, hardly ever while it matters to nobody."""

from collections.abc import Iterable

from qmsup.core.vram.attribution import Stage
from qmsup.units import Seconds

OFTEN = Seconds(0.2)
"""A load takes memory within some tenths of a second."""
AT_ONCE = Seconds(0.05)
"""Memory that comes back is waited for, by a load."""
SOON = Seconds(0.5)
"""The next load may come soon, and what it finds is to be known."""
NOW_AND_THEN = Seconds(2.0)
SELDOM = Seconds(10.0)
SETTLED_AFTER = Seconds(1.0)
"""A child that got ready takes the last of its memory within this."""
RESTLESS_FOR = Seconds(10.0)
"""Where models come and go, more of them do within this."""
SHOWN_FOR = Seconds(60.0)
"""Whoever looked at a reading is likely to look again within this."""
_SHARE = 10
"""Looking takes no more than one of so many parts of the time, unless a driver takes seconds for it."""
_SHARE_OF_A_WAIT = 1
"""Who waits for memory to come back waits for the next look: that is not long after a driver has been slow once."""


def interval(
    stages: Iterable[Stage],
    *,
    is_settling: bool,
    decides: bool = True,
    since_change: Seconds,
    since_shown: Seconds,
    took: Seconds,
) -> Seconds:
    """From one look to the next.

    Args:
        stages: of our children.
        is_settling: memory of some that have gone is on its way back.
        decides: something may be decided by what is seen.
        since_change: how long ago one came, went, or got ready.
        since_shown: how long ago somebody wanted to see a reading.
        took: the last look.
    """
    all_stages = [*stages]
    is_moving = any(stage is not Stage.READY for stage in all_stages)
    if is_settling:
        wish = AT_ONCE
    elif is_moving or since_change < SETTLED_AFTER:
        wish = OFTEN
    elif since_change < RESTLESS_FOR:
        wish = SOON
    elif (all_stages and decides) or since_shown < SHOWN_FOR:
        wish = NOW_AND_THEN
    else:
        wish = SELDOM
    share = _SHARE_OF_A_WAIT if is_settling else _SHARE
    return Seconds(max(wish, min(SELDOM, share * took)))
