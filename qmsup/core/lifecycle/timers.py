"""When time alone changes something for a child."""

from dataclasses import dataclass

from qmsup.units import Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The times of one model's configuration.

    Attributes:
        start_timeout: from the first spawn to ready, further tries included.
        stop_grace: between TERM and KILL.
        term_again: repeat an unanswered TERM after this long; None = never.
        port_tries: spawns at most for one start, when ports turn out to be taken; 1 where the port is fixed.
        silent_looks: how often a ready child may answer nothing and do nothing until it counts as hanging.
    """

    start_timeout: Seconds
    stop_grace: Seconds
    term_again: Seconds | None = None
    port_tries: int = 3
    silent_looks: int = 6


@dataclass(slots=True)
class Timers:
    """Points of the monotonic clock; None = nothing is to happen then."""

    start_by: Seconds | None = None
    probe_at: Seconds | None = None
    probe_until: Seconds | None = None
    term_at: Seconds | None = None
    kill_at: Seconds | None = None
    look_at: Seconds | None = None
    give_up_at: Seconds | None = None

    def earliest(self) -> Seconds | None:
        """The first of them."""
        times = (
            self.start_by, self.probe_at, self.probe_until, self.term_at,
            self.kill_at, self.look_at, self.give_up_at,
        )  # fmt: skip
        return min((t for t in times if t is not None), default=None)


def has_come(at: Seconds | None, now: Seconds) -> bool:
    """Whether it is time."""
    return at is not None and now >= at
