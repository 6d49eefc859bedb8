"""One job at a time is given to a server: it could cancel none that it has begun, and knows no order but its own.

As a rule the line sees to that, for a server of images serves one request at a time, and a job counts as one. Where a
configuration allows more, or nobody told it what the program is, jobs wait here, each under its request's grant.
"""

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Turns(Generic[T]):
    """Who has a server's turn, and who waits for it, by the server's address."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[T]] = {}

    def take(self, server: str, who: T) -> bool:
        """Take the turn; False = somebody has it, and it comes later, out of `end`."""
        if server in self._waiting:
            self._waiting[server].append(who)
            return False
        self._waiting[server] = deque()
        return True

    def hold(self, server: str) -> None:
        """Somebody has had the turn since a former life."""
        self._waiting.setdefault(server, deque())

    def end(self, server: str) -> T | None:
        """The turn is over; who has it now, if anybody waited."""
        waiting = self._waiting.get(server)
        if waiting:
            return waiting.popleft()
        self._waiting.pop(server, None)
        return None

    def withdraw(self, is_gone: Callable[[T], bool]) -> list[T]:
        """Take out of the waiting who wants no turn any more; who they were."""
        gone: list[T] = []
        for server, waiting in self._waiting.items():
            stays = deque[T]()
            for who in waiting:
                (gone if is_gone(who) else stays).append(who)
            self._waiting[server] = stays
        return gone

    def leave(self) -> list[T]:
        """Everybody who waits; nobody does any more."""
        gone = [who for waiting in self._waiting.values() for who in waiting]
        self._waiting.clear()
        return gone
