"""What is to be done with a child. Its process manager carries these out, in order."""

from dataclasses import dataclass

from qmsup.ids import Incarnation


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawn:
    """Start the program; answer with Spawned or SpawnFailed."""

    incarnation: Incarnation


@dataclass(frozen=True, slots=True)
class StartProbe:
    """Ask the child once whether it is ready; answer with ProbeAnswered."""


@dataclass(frozen=True, slots=True)
class EndProbe:
    """Close the probe's connection, answered or not: an open one keeps a child from ending."""


@dataclass(frozen=True, slots=True)
class LookAtWork:
    """See what all of the child has done so far; answer with WorkSeen."""


@dataclass(frozen=True, slots=True)
class Terminate:
    """Send TERM to all that came from the child."""


@dataclass(frozen=True, slots=True)
class Kill:
    """Send KILL to everything that came from the child; answer with Gone once nothing of it is left."""


@dataclass(frozen=True, slots=True)
class SeeRest:
    """The leader has ended as asked: answer with Gone once nothing else that came from the child lives."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Forget a child that KILL does not end. Its port stays taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportStarting:
    """The incarnation was spawned."""

    incarnation: Incarnation


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportReady:
    """The incarnation answers requests."""

    incarnation: Incarnation


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportStopped:
    """The incarnation is gone as asked, or never was."""

    incarnation: Incarnation


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFailed:
    """The incarnation is gone by itself, or could not start."""

    incarnation: Incarnation
    reason: str
    last_lines: str = ""


Effect = (
    Spawn
    | StartProbe
    | EndProbe
    | LookAtWork
    | Terminate
    | Kill
    | SeeRest
    | GiveUp
    | ReportStarting
    | ReportReady
    | ReportStopped
    | ReportFailed
)
