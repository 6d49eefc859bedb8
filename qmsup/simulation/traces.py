"""What a trace holds: requests that come at their times whatever happens, and loops that wait for their answers."""

from dataclasses import dataclass

from qmsup.core.scheduling.events import Outcome
from qmsup.ids import ModelId
from qmsup.units import Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a request is like, whenever it comes.

    Attributes:
        model: as a client writes it: an id or an alias; of a name that is neither the request is refused.
        duration: how long its answer takes once it was granted.
        outcome: how the answer ends.
        hold, patience, timeout: what its headers say; None = nothing, 0 = off.
        conversation: its affinity key, "" when it has none.
        abandon_after: its client goes away so long after it asked; None = it stays.
    """

    model: ModelId
    duration: Seconds
    outcome: Outcome = Outcome.FINISHED
    hold: Seconds | None = None
    patience: Seconds | None = None
    timeout: Seconds | None = None
    conversation: str = ""
    abandon_after: Seconds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """Requests that come at fixed times, however long those before them take.

    Attributes:
        at: when the first comes; the trace begins at 0.
        every: the time between two of them.
    """

    name: str
    ask: Ask
    at: Seconds
    times: int = 1
    every: Seconds = Seconds(0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """An agent: it asks, works on the answer for a while, and asks again. A refusal, or its own leaving, ends it.

    Attributes:
        at: when the first round is asked.
        gap: from the end of an answer to the next round: the tool call.
        last: how the answer of the last round ends.
    """

    name: str
    ask: Ask
    at: Seconds
    rounds: int
    gap: Seconds
    last: Outcome = Outcome.FINISHED


Item = Arrivals | Loop
Trace = tuple[Item, ...]
