import pytest

from qmsup.telemetry.visible import visible

CARDS = [(0, "GPU-aa11"), (1, "GPU-aa22"), (2, "MIG-bb1"), (2, "MIG-bb2")]

WISHES = {
    "0": (0,),
    "1,0": (1, 0),
    "2": (2, 3),
    "GPU-aa22": (1,),
    "GPU-aa2": (1,),
    " 1 , GPU-aa1 ": (1, 0),
    "MIG-bb2": (3,),
    "": (),
    "-1": (),
    "0,-1,1": (0,),
    "0,9,1": (0,),
    "0,GPU-zz,1": (0,),
    "GPU-aa": (),  # both begin so
    "1,1": (1,),
    "1,GPU-aa22,0": (1,),
    "NoDevFiles": (),
}


@pytest.mark.parametrize(("wish", "seen"), WISHES.items())
def test_cards_are_seen_as_the_variable_says(wish: str, seen: tuple[int, ...]) -> None:
    assert visible(wish, CARDS) == seen


def test_without_it_all_are() -> None:
    assert visible(None, CARDS) == (0, 1, 2, 3)
