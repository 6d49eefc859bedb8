"""A child that runs, as its owner holds it."""

from dataclasses import dataclass

from qmsup.processes.child import Child
from qmsup.processes.command import Launch
from qmsup.processes.log_watch import LogWatch
from qmsup.processes.rotation import LogKeeper
from qmsup.spec import ModelSpec
from qmsup.upstream.readiness import ReadinessCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A child, and what it was started with: the configuration may be another by now.

    Attributes:
        log_watch: readiness is a line of its log, not an answer.
    """

    child: Child
    launch: Launch
    check: ReadinessCheck
    log_watch: LogWatch | None
    log_keeper: LogKeeper
    spec: ModelSpec
