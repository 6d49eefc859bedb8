"""The log of what a turn decided: line by line, but not without end, as the scheduler's thread writes it."""

from collections.abc import Callable
from functools import partial

from qmsup.ids import EventNumber
from qmsup.log import Log

MOST = 200
"""Lines of one turn. A worker that dies with thousands of streams is a turn of thousands of decisions, and each line
takes longer than the decision did. The journal has them all."""


class TurnLog:
    """For the scheduler actor's thread alone. The lines wait: nobody who is told of a decision is to wait for them."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._unwritten: list[Callable[[], None]] = []
        self._cause: EventNumber | None = None
        self._lines = 0

    def info(self, event: str, *, cause: EventNumber, **fields: object) -> None:
        """Log a decision, with the next `write`.

        Args:
            event: what was decided.
            cause: the turn in which.
            fields: about it.
        """
        if cause != self._cause:
            self._cause, self._lines = cause, 0
        self._lines += 1
        if self._lines <= MOST:
            self._unwritten.append(partial(self._log.info, event, **fields, cause=cause))
        elif self._lines == MOST + 1:
            hint = "further ones of this turn are in the journal alone: qmsup explain --dump FILE"
            left_out = partial(self._log.info, "decisions.left_out", cause=cause, hint=hint)
            self._unwritten.append(left_out)

    def write(self) -> None:
        """Write the lines there are."""
        unwritten, self._unwritten = self._unwritten, []
        for line in unwritten:
            line()
