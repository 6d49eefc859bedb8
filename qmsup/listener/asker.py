"""What a request that asks for a model has to offer, so that the link can tell it what becomes of it."""

from dataclasses import dataclass
from typing import Protocol

from qmsup.errors import Refusal
from qmsup.wire.listening import Granted


@dataclass(frozen=True, slots=True)
class CountAt:
    """A host that can count a prompt's tokens, and where it answers."""

    host: str
    upstream: str


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

    def on_refused(self, refusal: Refusal, count_at: CountAt | None = None) -> None:
        """It gets no grant, and the link has forgotten it; `count_at` might see that it is not too long after all."""
        ...

    def on_cut(self, refusal: Refusal, *, had_lapsed: bool = False) -> None:
        """Its lease is void: end the relay, and say `Link.done` as ever.

        Args:
            refusal: why.
            had_lapsed: it was void before it was used. What has not begun may be asked for again after the `done`.
        """
        ...
