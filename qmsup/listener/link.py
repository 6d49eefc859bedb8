"""The app's road to the scheduler, as the app needs it."""

from collections.abc import Mapping
from typing import Protocol

from qmsup.units import Seconds


class Link(Protocol):
    """Asks the scheduler what a control client could ask. Safe to use from any thread."""

    def ask(self, verb: str, args: Mapping[str, object], timeout: Seconds) -> object:
        """The answer's body: what JSON can say.

        Raises:
            SchedulerUnavailableError: No answer in that time.
            RequestError: The scheduler refused.
        """
        ...
