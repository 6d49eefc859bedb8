"""How the app asks the scheduler, as the app needs it."""

from collections.abc import Mapping
from typing import Protocol

from qmsup.units import Seconds
from qmsup.wire.listening import Finished


class Scheduler(Protocol):
    """Asks what a control client could ask. Called from any thread but the relay engine's."""

    def ask(self, verb: str, args: Mapping[str, object], timeout: Seconds) -> object:
        """The answer's body: what JSON can say.

        Raises:
            SchedulerUnavailableError: No answer in that time.
            RequestError: The scheduler refused.
        """
        ...

    def note(self, finished: Finished) -> None:
        """Tell of a request that is over, some time. For any thread."""
        ...
