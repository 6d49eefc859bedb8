"""When our models hold more than others leave them: which are unloaded, when, and when not again.

A new load is held to the ceiling. What is loaded already stays, until it has held too much for a while: a game that
asks for memory and finds none dies, or drags every model down with it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from qmsup.ids import ModelId
from qmsup.units import MiB, Seconds

_SHORTEST_REST = Seconds(60.0)
"""Memory that was given back is taken into use within that time, or the reading was a freak."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A model that nobody uses, that may be unloaded.

    Attributes:
        holds: GPU memory, as seen.
        is_kept: somebody is likely to come back for it.
    """

    model: ModelId
    holds: MiB
    is_kept: bool = False


def victims(candidates: Iterable[Candidate], excess: MiB) -> tuple[ModelId, ...]:
    """Whom to unload, first to last: those that nobody is likely to come back for, the largest first, until it fits.

    Args:
        candidates: what may be unloaded; that is not everything that holds memory.
        excess: what is held too much.
    """
    taken: list[ModelId] = []
    for each in sorted(candidates, key=_order):
        if excess <= 0:
            break
        if each.holds:
            taken.append(each.model)
            excess = MiB(excess - each.holds)
    return tuple(taken)


def _order(candidate: Candidate) -> tuple[bool, int, ModelId]:
    return candidate.is_kept, -candidate.holds, candidate.model


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """For how long too much has been held, without a pause.

    Attributes:
        since: None = it is not too much now, or that is not known.
        rests_until: something was unloaded: nothing is before this.
    """

    since: Seconds | None = None
    rests_until: Seconds = Seconds(0.0)

    def after(self, *, is_over: bool, now: Seconds) -> "Watch":
        """One look more.

        Args:
            is_over: too much is held; False too where no reading can be trusted.
            now: the monotonic clock.
        """
        if is_over == (self.since is not None):
            return self
        return replace(self, since=now if is_over else None)

    def due(self, grace: Seconds) -> Seconds | None:
        """When something is to be unloaded, should nothing change; None = not as things are."""
        return None if self.since is None else Seconds(max(self.since + grace, self.rests_until))

    def rested(self, grace: Seconds, now: Seconds) -> "Watch":
        """Something was unloaded. What comes of it shows after a while, so that long it is the last."""
        return Watch(rests_until=Seconds(now + max(_SHORTEST_REST, 2 * grace)))
