"""How long a model that failed to start is left alone: 1, 2, 4 … 60 s."""

from dataclasses import dataclass

from qmsup.ids import Incarnation
from qmsup.units import Seconds

_NONE = Incarnation(0)
_FIRST = 1.0
_LONGEST = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BackOff:
    """What is remembered of failed starts. A start counts as failed until it has served a request.

    Attributes:
        failures: failed starts since the last served request.
        until: no new start before this time.
        error: the last failure, in a sentence.
        incarnation: the last start that failed; only a younger or the same one can clear it.
    """

    failures: int = 0
    until: Seconds = Seconds(0.0)
    error: str = ""
    incarnation: Incarnation = _NONE

    def after_failure(self, incarnation: Incarnation, error: str, now: Seconds) -> "BackOff":
        """One more failed start."""
        delay = min(_LONGEST, _FIRST * 2.0 ** min(self.failures, 10))
        return BackOff(
            failures=self.failures + 1,
            until=Seconds(now + delay),
            error=error,
            incarnation=incarnation,
        )

    def after_service(self, incarnation: Incarnation) -> "BackOff":
        """A request got an answer from this start. A start older than the last failure proves nothing."""
        return self if incarnation < self.incarnation else BackOff()

    def left(self, now: Seconds) -> Seconds:
        """How long no start is tried; 0 = one may be."""
        return Seconds(max(0.0, self.until - now)) if self.failures else Seconds(0.0)
