"""Looks on: the state of a scheduler, kept up to date. For programs, `qmsup events` and `qmsup top`.

with looking_on(("model.", "decision.")) as mirror:
    print(mirror.state["model.chat"])
    for item in mirror.updates(Seconds(1.0)):
        print(item.topic, item.body)

Of a scheduler on this machine by its feed, of another one by asking it each second.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from typing_extensions import override

from qmsup.control.client import Client
from qmsup.control.door import Door, here
from qmsup.control.polled import PolledMirror
from qmsup.errors import QmsupError
from qmsup.transport import mirror
from qmsup.units import Seconds


class Mirror(mirror.Mirror):
    """One with a connection of its own to the scheduler of this machine. For one thread."""

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


@contextmanager
def looking_on(
    topics: Sequence[str] = ("",), *, timeout: Seconds = Seconds(5.0), door: Door | None = None
) -> Iterator[Mirror | PolledMirror]:
    """A mirror of a scheduler's state; ends with the `with`.

    Args:
        topics: prefixes; "" = everything.
        timeout: for each answer.
        door: the way to the scheduler; None = the one of this environment.

    Raises:
        SchedulerUnavailableError: nobody is there.
        QmsupError: it answers, but not so that this version can read it.
    """
    if door is None or door == here():
        with Mirror(topics, timeout=timeout) as near:
            yield near
        return
    with Client.through(door, timeout) as client:
        yield PolledMirror(client.ask, topics)
