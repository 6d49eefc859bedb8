"""Requests to models' servers that are under way, watched by an actor's inbox, each with its end in time."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from qmsup.actors.inbox import PollingInbox
from qmsup.units import Seconds
from qmsup.upstream.call import Answered, Call, Unanswered, Wanted

Ended = Callable[[Answered | Unanswered], None]


@dataclass(frozen=True, slots=True)
class Turn:
    """A descriptor is ready: to be done as the actor's next message, where pykka looks after what goes wrong."""

    do: Callable[[], None]


@dataclass(slots=True)
class _UnderWay:
    call: Call
    until: float
    on_end: Ended
    events: int = field(default=0)


class Calls:
    """For the inbox's own thread alone."""

    def __init__(self, inbox: PollingInbox) -> None:
        """Nothing is under way.

        Args:
            inbox: of an actor that does the Turns it gets.
        """
        self._inbox = inbox
        self._under_way: dict[int, _UnderWay] = {}

    @property
    def due(self) -> Seconds | None:
        """When `work` is wanted next; None = nothing is under way."""
        return min((Seconds(each.until) for each in self._under_way.values()), default=None)

    def start(self, wanted: Wanted, within: Seconds, on_end: Ended) -> None:
        """Begin a request; `on_end` is called once with what came of it, perhaps before this returns.

        Args:
            wanted: the request; its body's file is closed with it.
            within: it is given up after so long.
            on_end: takes the result.
        """
        try:
            call = Call(wanted)
        except OSError as error:
            on_end(Unanswered(because=f"no request to {wanted.upstream}: {error.strerror}"))
            return
        each = _UnderWay(call, time.monotonic() + within, on_end)
        self._under_way[call.fileno()] = each
        self._look(each)

    def work(self, now: Seconds) -> None:
        """Give up what has taken too long."""
        for each in [each for each in self._under_way.values() if now >= each.until]:
            self._end(each, Unanswered(because="no answer came in time"))

    def close(self) -> None:
        """Give everything up; nobody is told."""
        for each in self._under_way.values():
            self._inbox.forget(each.call.fileno())
            each.call.close()
        self._under_way.clear()

    def _look(self, each: _UnderWay) -> None:
        call = each.call
        if self._under_way.get(call.fileno()) is not each:
            return  # it has ended; the readiness seen was of its number's next owner
        result = call.look()
        if result is not None:
            self._end(each, result)
        elif each.events != call.events:
            each.events = call.events
            turn = Turn(partial(self._look, each))
            self._inbox.watch(call.fileno(), lambda: turn, events=each.events)

    def _end(self, each: _UnderWay, result: Answered | Unanswered) -> None:
        fd = each.call.fileno()
        self._inbox.forget(fd)
        del self._under_way[fd]
        each.call.close()
        each.on_end(result)
