"""What a request that asks for a model has to offer, so that the link can tell it what becomes of it."""

from typing import Protocol

from qmsup.errors import Refusal
from qmsup.wire.listening import Granted


class Asker(Protocol):
    """One request as the link sees it: told what the scheduler says about it, in the loop's thread."""

    def on_place(self, place: int, *, was_ready: bool | None) -> None:
        """It waits; 1 = next. With the first word, whether its model was ready when it came."""
        ...

    def on_loading(self) -> None:
        """Its model is loading for it."""
        ...

    def on_granted(self, grant: Granted) -> None:
        """Its lease is live until `Link.done`."""
        ...

    def on_refused(self, refusal: Refusal) -> None:
        """It gets no grant; the link has forgotten it."""
        ...

    def on_cut(self, refusal: Refusal) -> None:
        """Its lease is void: end the relay, and say `Link.done` as ever."""
        ...
