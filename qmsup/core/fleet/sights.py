"""What was seen of a host when it was looked at last."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from qmsup.ids import HostName, ModelId
from qmsup.units import Seconds

BELIEVED_FOR = Seconds(10.0)
"""A host that was not looked at for so long is taken for unhealthy: whoever looks may hang."""


class HostKind(StrEnum):
    """Which program answers there."""

    UNKNOWN = ""
    LLAMA_SERVER = "llama-server"
    ROUTER = "llama-server router"
    QMSUP = "qmsup"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """One look at a host.

    Attributes:
        at: when, by the monotonic clock.
        is_healthy: its `/health` answered 200.
        because: what was wrong, "" when nothing was.
        loaded: the models that are resident.
        contexts: tokens that one slot of a model holds, as far as that is known.
        slots: how many it has, where it has slots of one model; None = not known.
        busy: those of them at work.
    """

    host: HostName
    at: Seconds
    is_healthy: bool
    because: str = ""
    kind: HostKind = HostKind.UNKNOWN
    loaded: frozenset[ModelId] = frozenset()
    contexts: Mapping[ModelId, int] = field(default_factory=dict)
    slots: int | None = None
    busy: int | None = None

    def is_trusted(self, now: Seconds) -> bool:
        """Whether the host may be used for all that is known of it."""
        return self.is_healthy and now < self.at + BELIEVED_FOR
