"""What those who have waited out their patience lay claim to, as `closers` has named them."""

from dataclasses import dataclass

from qmsup.core.scheduling.line import Case, Rank
from qmsup.ids import ModelId


@dataclass(frozen=True, slots=True)
class Closer:
    """A waiter past its patience that holds back who stands behind it, by `rank`.

    Attributes:
        collides: nothing but swaps under way keeps it from starting one of its own.
    """

    case: Case
    rank: Rank
    evict: tuple[ModelId, ...]
    collides: bool = False

    def touches(self, *models: ModelId) -> bool:
        """Whether it would load or stop one of these."""
        return not {self.case.model, *self.evict}.isdisjoint(models)


class Closers:
    """Everybody who is one now, in line order.

    Attributes:
        closing: what takes no new requests, and whom it waits for.
        reserved: what nobody behind may load or stop.
        first_without_render: the first that renders lock out, so all render models are closed to who is behind it.
        have_been_weighed: it was asked what they would have to stop if something else were loaded.
    """

    __slots__ = ("closing", "first_without_render", "have_been_weighed", "named", "reserved")

    def __init__(self) -> None:
        self.named: tuple[Closer, ...] = ()
        self.closing: dict[ModelId, Closer] = {}
        self.reserved: dict[ModelId, Closer] = {}
        self.first_without_render: Closer | None = None
        self.have_been_weighed = False

    def add(self, closer: Closer, *, renders: bool) -> None:
        """One more, behind all others; it meets none of them."""
        self.named += (closer,)
        self.reserved[closer.case.model] = closer
        for victim in closer.evict:
            self.reserved[victim] = self.closing[victim] = closer
        if not renders and self.first_without_render is None:
            self.first_without_render = closer

    def locks_out(self, closer: Closer, *models: ModelId, renders: bool) -> bool:
        """Whether a closer keeps others from these: by what it would load or stop, or from all that renders."""
        return closer.touches(*models) or (renders and closer is self.first_without_render)
