"""Looks on: the state of a scheduler, kept up to date by its feed. For programs, `qmsup events` and `qmsup top`.

with Mirror(("model.", "decision.")) as mirror:
    print(mirror.state["model.chat"])
    for item in mirror.updates(Seconds(1.0)):
        print(item.topic, item.body)
"""

from collections.abc import Sequence

from typing_extensions import override

from qmsup.control.client import Client
from qmsup.errors import QmsupError
from qmsup.transport import mirror
from qmsup.units import Seconds


class Mirror(mirror.Mirror):
    """One with a connection of its own to the scheduler. For one thread."""

    def __init__(self, topics: Sequence[str] = ("",), *, timeout: Seconds = Seconds(5.0)) -> None:
        """Subscribe, and ask for the state.

        Args:
            topics: prefixes; "" = everything.
            timeout: for the state.

        Raises:
            SchedulerUnavailableError: nobody is there.
            QmsupError: it answers, but not so that this version can read it.
        """
        self._client = Client(timeout=timeout)
        try:
            super().__init__(lambda: self._client.ask("subscribe"), topics)
        except QmsupError:
            self._client.close()
            raise

    @override
    def close(self) -> None:
        """End the subscription."""
        super().close()
        self._client.close()
