"""Holds: an idle model is kept for a while for conversations that are likely to come back.

Between two rounds of an agent's loop its tools run, and the model looks like one that nobody needs. Each
conversation has one hold on a model at most; the model is held until the latest of them ends.
"""

from typing import NamedTuple

from qmsup.core.scheduling.events import Outcome
from qmsup.ids import ListenerName
from qmsup.spec import HoldOn, SchedulerSpec
from qmsup.units import Seconds

_NEVER = Seconds(float("-inf"))
_MANY = 64
"""Holds of one model from which on those that have ended are worth clearing out."""

_MAY_COME_BACK = frozenset({Outcome.TOOL_CALLS, Outcome.UNKNOWN})


class Conversation(NamedTuple):
    """Whose hold it is.

    Attributes:
        key: what the requests of a conversation share; "" = nothing is known of it.
        listener, client: where it came from and from whom, which has to do without a key.
    """

    key: str
    listener: ListenerName = ListenerName("")
    client: str = ""


class Holds:
    """The holds on one model.

    Attributes:
        until: when the latest ends, in the past once there is none.
    """

    __slots__ = ("_ends", "until")

    def __init__(self) -> None:
        self._ends: dict[Conversation, Seconds] = {}
        self.until = _NEVER

    def __len__(self) -> int:
        """How many are kept; some may have ended."""
        return len(self._ends)

    def keep(self, conversation: Conversation, until: Seconds, now: Seconds) -> None:
        """Hold for a conversation; of two holds of its own the later end counts."""
        count = len(self._ends)
        if count >= _MANY and not count & (count - 1):  # seldom, the more there are
            self._ends = {one: end for one, end in self._ends.items() if end > now}
        self._ends[conversation] = max(until, self._ends.get(conversation, until))
        self.until = max(self.until, until)

    def drop(self, conversation: Conversation) -> None:
        """The conversation came back, or nothing is to be kept for it."""
        end = self._ends.pop(conversation, None)
        if end == self.until:
            self.until = max(self._ends.values(), default=_NEVER)

    def clear(self) -> None:
        """The model stops: there is nothing left to hold."""
        self._ends.clear()
        self.until = _NEVER


def window(scheduler: SchedulerSpec, wish: Seconds | None, outcome: Outcome) -> Seconds:
    """How long a model is held after a lease, from 0.

    Args:
        scheduler: the defaults, and which outcomes they are for.
        wish: what the client's header said, which counts whatever the outcome; None = nothing.
        outcome: how the lease ended.
    """
    if wish is not None:
        return wish
    if scheduler.hold_on is HoldOn.ALWAYS or outcome in _MAY_COME_BACK:
        return scheduler.hold
    return Seconds(0.0)
