"""The log of what a turn decided: line by line, but not without end, as the scheduler's thread writes it."""

from qmsup.ids import EventNumber
from qmsup.log import Log

MOST = 200
"""Lines of one turn. A worker that dies with thousands of streams is a turn of thousands of decisions, and each line
takes longer than the decision did. The journal has them all."""


class TurnLog:
    """For the scheduler actor's thread alone."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._cause: EventNumber | None = None
        self._lines = 0

    def info(self, event: str, *, cause: EventNumber, **fields: object) -> None:
        """Log a decision.

        Args:
            event: what was decided.
            cause: the turn in which.
            fields: about it.
        """
        if cause != self._cause:
            self._cause, self._lines = cause, 0
        self._lines += 1
        if self._lines <= MOST:
            self._log.info(event, **fields, cause=cause)
        elif self._lines == MOST + 1:
            hint = "further ones of this turn are in the journal alone: qmsup explain --dump FILE"
            self._log.info("decisions.left_out", cause=cause, hint=hint)
