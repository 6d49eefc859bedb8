"""What others use when nothing is the matter."""

import pytest

from qmsup.core.vram.floor import Floor, growth, steadied
from qmsup.units import MiB, mib_from_gb

ONE, BOTH = frozenset({"u1"}), frozenset({"u1", "u2"})

GROWTH = {
    # foreign, floor → growth, in GB
    "none": (1.5, 1.5, 0.0),
    "a game": (9.5, 1.5, 8.0),
    "jitter is none": (1.74, 1.5, 0.0),
    "a quarter is no jitter": (1.75, 1.5, 0.25),
    "less than ever": (1.0, 1.5, 0.0),
}


@pytest.mark.parametrize(("foreign", "floor", "grown"), GROWTH.values(), ids=GROWTH)
def test_growth(foreign: float, floor: float, grown: float) -> None:
    assert growth(mib_from_gb(foreign), mib_from_gb(floor)) == mib_from_gb(grown)


STEADIED = {
    # foreign, before, moved → foreign
    "nothing moved": (9, 1, 0, 9),
    "all of it may be ours": (3, 1, 2, 1),
    "less too": (0, 1, 2, 1),
    "some of it is theirs": (9, 1, 2, 7),
    "they gave some back": (1, 9, 2, 3),
}


@pytest.mark.parametrize(("foreign", "before", "moved", "wanted"), STEADIED.values(), ids=STEADIED)
def test_what_our_own_children_take_is_not_others(
    foreign: int, before: int, moved: int, wanted: int
) -> None:
    assert steadied(MiB(foreign), MiB(before), MiB(moved)) == wanted


def test_the_lowest_counts() -> None:
    floor = Floor()
    for foreign in (1.5, 9.5, 1.4, 1.6):
        floor = floor.after(ONE, mib_from_gb(foreign))

    assert floor.lowest == {ONE: mib_from_gb(1.4)}


def test_each_set_of_cards_has_its_own() -> None:
    floor = Floor().after(BOTH, mib_from_gb(3.0)).after(ONE, mib_from_gb(1.0))

    assert floor.lowest == {BOTH: mib_from_gb(3.0), ONE: mib_from_gb(1.0)}


OTHER, THREE = frozenset({"u2", "u3"}), frozenset({"u1", "u2", "u3"})
NEW_SETS = {
    # known floors, the new set, what others use of each card of it → its floor, in GB
    "a card comes while a game runs": ({ONE: 1.5}, BOTH, {"u1": 9.5, "u2": 0.5}, 2.0),
    "one goes": ({BOTH: 2.0}, ONE, {"u1": 9.5}, 2.0),
    "one goes and another comes": ({BOTH: 2.0}, OTHER, {"u2": 8.5, "u3": 0.25}, 2.25),
    "the least that is known counts": (
        {ONE: 1.5, BOTH: 1.75},
        THREE,
        {"u1": 9.5, "u2": 0.5, "u3": 0.25},
        2.0,
    ),
    "it is never more than is seen": ({ONE: 1.5}, BOTH, {"u1": 0.5, "u2": 0.5}, 1.0),
    "of other cards nothing follows": ({ONE: 1.5}, OTHER, {"u2": 8.5, "u3": 0.5}, 9.0),
}


@pytest.mark.parametrize(("known", "cards", "each", "wanted"), NEW_SETS.values(), ids=NEW_SETS)
def test_a_game_is_not_forgotten_when_a_card_comes_or_goes(
    known: dict[frozenset[str], float],
    cards: frozenset[str],
    each: dict[str, float],
    wanted: float,
) -> None:
    floor = Floor(lowest={known_set: mib_from_gb(size) for known_set, size in known.items()})
    by_card = {card: mib_from_gb(size) for card, size in each.items()}

    after = floor.after(cards, mib_from_gb(sum(each.values())), by_card)

    assert after.lowest == {**floor.lowest, cards: mib_from_gb(wanted)}
