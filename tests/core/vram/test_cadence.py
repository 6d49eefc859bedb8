"""How often the memory is looked at."""

import pytest

from qmsup.core.vram.attribution import Stage
from qmsup.core.vram.cadence import interval
from qmsup.units import Seconds

NEVER = float("inf")
STAGES = {"s": Stage.STARTING, "r": Stage.READY, "e": Stage.STOPPING}

LOOKS = {
    # stages, memory comes back, since a change, since shown, the last look took → interval
    "nothing runs": ("", False, NEVER, NEVER, 0.0, 10.0),
    "somebody looks": ("", False, NEVER, 59.0, 0.0, 2.0),
    "somebody looked": ("", False, NEVER, 60.0, 0.0, 10.0),
    "a child serves": ("r", False, 10.0, NEVER, 0.0, 2.0),
    "a child got ready a while ago": ("r", False, 9.9, NEVER, 0.0, 0.5),
    "a child went a while ago": ("", False, 1.0, NEVER, 0.0, 0.5),
    "a child has just got ready": ("r", False, 0.9, NEVER, 0.0, 0.2),
    "a child has just gone": ("", False, 0.9, NEVER, 0.0, 0.2),
    "a child loads beside it": ("rs", False, NEVER, NEVER, 0.0, 0.2),
    "a child stops": ("e", False, NEVER, NEVER, 0.0, 0.2),
    "its memory comes back": ("", True, NEVER, NEVER, 0.0, 0.05),
    "it comes back while another loads": ("s", True, NEVER, NEVER, 0.0, 0.05),
    "looking takes its time": ("s", False, NEVER, NEVER, 0.05, 0.5),
    "looking takes very long": ("s", False, NEVER, NEVER, 5.0, 10.0),
    "it took its time, and memory comes back": ("s", True, NEVER, NEVER, 0.7, 0.7),
}


def test_what_decides_nothing_is_read_for_who_looks() -> None:
    found = [
        interval(
            [Stage.READY],
            is_settling=False,
            decides=False,
            since_change=Seconds(60.0),
            since_shown=Seconds(shown),
            took=Seconds(0.0),
        )
        for shown in (1.0, NEVER)
    ]

    assert found == [2.0, 10.0]


@pytest.mark.parametrize(
    ("stages", "is_settling", "changed", "shown", "took", "wanted"), LOOKS.values(), ids=LOOKS
)
def test_interval(
    stages: str, is_settling: bool, changed: float, shown: float, took: float, wanted: float
) -> None:
    found = interval(
        (STAGES[letter] for letter in stages),
        is_settling=is_settling,
        since_change=Seconds(changed),
        since_shown=Seconds(shown),
        took=Seconds(took),
    )

    assert found == wanted
