"""What happened to a child, or is asked of it. The machine changes through these and in no other way."""

from dataclasses import dataclass
from enum import StrEnum

from qmsup.core.lifecycle.liveness import Work
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawned:
    """The program runs.

    Attributes:
        can_be_asked: a question over HTTP tells whether it lives.
        can_be_watched: its work is done by processes that we see.
    """

    can_be_asked: bool = True
    can_be_watched: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """A child of a former scheduler goes on as this incarnation; it was ready, and still answers."""

    incarnation: Incarnation
    spawned: Spawned


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnFailed:
    """There is no process; `reason` says what to do."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeAnswered:
    """A probe is over.

    Attributes:
        words: what it saw, for the message of a start that took too long.
        is_answer: the child itself said something, if only that it is loading.
    """

    readiness: Readiness
    words: str = ""
    is_answer: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSeen:
    """What LookAtWork found.

    Attributes:
        stalls: why it hangs though it answers (see `progress`); "" = it does not.
    """

    work: Work
    stalls: str = ""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """Nothing that came from the child runs any more. `last_lines` where Exited did not come before."""

    last_lines: str = ""


@dataclass(frozen=True, slots=True)
class TimePassed:
    """The time of `wake_at` may have come."""


Event = (
    Wanted
    | Unwanted
    | Spawned
    | Adopted
    | SpawnFailed
    | ProbeAnswered
    | WorkSeen
    | Exited
    | Gone
    | TimePassed
)
