"""What happened to a child, or is asked of it. The machine changes through these and in no other way."""

from dataclasses import dataclass
from enum import StrEnum

from qmsup.ids import Incarnation


class Readiness(StrEnum):
    """What one probe found."""

    READY = "ready"
    NOT_YET = "not_yet"
    FOREIGN = "foreign"
    """Something answers on the port, and it is not our child."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The scheduler wants this incarnation ready."""

    incarnation: Incarnation


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwanted:
    """The scheduler wants this incarnation gone, ready or not."""

    incarnation: Incarnation


@dataclass(frozen=True, slots=True)
class Spawned:
    """The program runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnFailed:
    """There is no process; `reason` says what to do."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeAnswered:
    """A probe is over; `words` say what it saw, for the message of a start that took too long."""

    readiness: Readiness
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited:
    """The child's leader ended.

    Attributes:
        how: such as `exited with code 1` or `was killed by SIGKILL`.
        hint: what that means and what to do, "" when unknown.
        port_taken: it ended because it could not bind its port.
    """

    how: str
    hint: str = ""
    last_lines: str = ""
    port_taken: bool = False


@dataclass(frozen=True, slots=True)
class Gone:
    """Nothing that came from the child runs any more."""


@dataclass(frozen=True, slots=True)
class TimePassed:
    """The time of `wake_at` may have come."""


Event = Wanted | Unwanted | Spawned | SpawnFailed | ProbeAnswered | Exited | Gone | TimePassed
