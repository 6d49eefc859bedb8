"""What all clients that a worker holds have in common."""

from dataclasses import dataclass
from typing import Protocol

from qmsup.listener.link import Link
from qmsup.listener.relay import account
from qmsup.listener.relay.loop import Loop
from qmsup.listener.relay.names import Names
from qmsup.wire.listening import Finished


class Guest(Protocol):
    """A client that is held."""

    def tick(self, now: float) -> None:
        """About once a second."""
        ...

    def give_up(self) -> None:
        """The worker ends: cut the client off."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """What all clients of a worker share.

    Attributes:
        names: where upstreams are.
        held: every client that is held; one takes itself out.
    """

    loop: Loop
    link: Link
    names: Names
    held: set[Guest]
    access_log: bool

    def see_off(self, guest: Guest, told: Finished) -> None:
        """A client is held no more; tell what became of its request."""
        self.held.discard(guest)
        self.link.activity.add(told)
        if self.access_log:
            account.log(told)
