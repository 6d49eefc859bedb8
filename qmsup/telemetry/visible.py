"""Which NVIDIA cards the models' programs will see: CUDA_VISIBLE_DEVICES, read as CUDA reads it."""

from collections.abc import Sequence

VARIABLE = "CUDA_VISIBLE_DEVICES"


def visible(wish: str | None, cards: Sequence[tuple[int, str]]) -> tuple[int, ...]:
    """Positions in `cards` of those that are seen, in the order of the wish.

    It names cards by number, by uuid, or by as much of a uuid as no other begins with. A name that fits none, or one
    that was named before, ends the list: what follows is not seen either. So `-1`, or nothing, hides all.

    Args:
        wish: the variable's value; None = not set, all are seen.
        cards: number and uuid of each. The parts of a card that is split (MIG) share its number. Numbers are in the
            order of the bus, as children count too (CUDA_DEVICE_ORDER=PCI_BUS_ID is in their environment).
    """
    if wish is None:
        return tuple(range(len(cards)))
    found: list[int] = []
    for name in wish.split(","):
        named = _named(name.strip(), cards)
        if not named or set(named) & set(found):
            break
        found += named
    return tuple(found)


def _named(name: str, cards: Sequence[tuple[int, str]]) -> list[int]:
    if name.isdecimal():
        return [at for at, (number, _) in enumerate(cards) if number == int(name)]
    begun = [at for at, (_, uuid) in enumerate(cards) if name and uuid.startswith(name)]
    return begun if len(begun) == 1 else []
