"""Whose fault it is that a child found no memory, or that a model was refused for want of it.

A box cannot know what a game is about to take, nor what one takes that it cannot see. All else is its own fault.
"""

from dataclasses import dataclass

READ_WITHIN_S = 1.0
"""A reading that old a load may go by: 0.25 s, the time a slow driver takes to answer, and what the machine takes."""
SEEN_WITHIN_S = 4.0
"""What a game gave back is seen by then: there is a look every 2 s while models are loaded."""
LOADED_BY_S = 3.0
"""A child that runs for longer has loaded, and what it takes now it takes as it serves."""


@dataclass(slots=True, kw_only=True)
class Span:
    """Something that went on for a while, by the clock of the wall; `until` is None as long as it does."""

    since: float
    until: float | None = None

    def touches(self, since: float, until: float) -> bool:
        """Whether it went on at some time between."""
        return self.since <= until and (self.until is None or self.until >= since)


@dataclass(slots=True, kw_only=True)
class Around:
    """What went on around the box.

    Attributes:
        games: when one held memory.
        gaps: when what is read could not be trusted.
        lags: whether the driver keeps the memory of the dead for a while, as is seen by readings alone.
    """

    games: list[Span]
    gaps: list[Span]
    lags: bool = False

    def excuses_denial(self, started: float, at: float) -> bool:
        """Whether a child that was started then may find no memory at `at`."""
        since = started - READ_WITHIN_S
        if any(since <= game.since <= at for game in self.games):
            return True  # it took what the child had not taken yet
        if self.lags and any(gap.touches(since - SEEN_WITHIN_S, at) for gap in self.gaps):
            return True
        return self._was_blind(since, at)

    def excuses_refusal(self, began: float, ended: float) -> bool:
        """Whether a model that fits an empty card may be refused between."""
        return any(game.touches(began - SEEN_WITHIN_S, ended) for game in self.games)

    def _was_blind(self, since: float, until: float) -> bool:
        """Whether there was a game that could not be seen."""
        return any(
            gap.touches(since - SEEN_WITHIN_S, until) and game.touches(gap.since, until)
            for gap in self.gaps
            for game in self.games
        )
