"""What others leave us. All in GB, as in a configuration."""

import pytest

from qmsup.core.vram.ceiling import (
    budget_of,
    live_ceiling,
    promised_beyond,
    ram_ceiling,
    shed_line,
)
from qmsup.core.vram.sample import Ram
from qmsup.units import MiB, mib_from_gb

CEILINGS = {
    # budget, foreign, floor, reserve → ceiling, shed line
    "nothing has grown": (24, 1.5, 1.5, 1, 24, 24.5),
    "a game takes 8 GB": (24, 9.5, 1.5, 1, 15, 16.5),
    "jitter costs no reserve": (24, 1.7, 1.5, 1, 24, 24.5),
    "the least growth costs it": (24, 1.75, 1.5, 1, 22.75, 24.25),
    "without a reserve": (24, 9.5, 1.5, 0, 16, 16.5),
    "the game leaves nothing": (8, 9.5, 1.5, 1, 0, 0.5),
    "nor for the reserve": (8.5, 9.5, 1.5, 1, 0, 1),
    "a lower use than ever": (24, 1.0, 1.5, 1, 24, 24.5),
}


@pytest.mark.parametrize(
    ("budget", "foreign", "floor", "reserve", "ceiling", "line"), CEILINGS.values(), ids=CEILINGS
)
def test_ceiling_and_shed_line(
    budget: float, foreign: float, floor: float, reserve: float, ceiling: float, line: float
) -> None:
    used, least = mib_from_gb(foreign), mib_from_gb(floor)
    whole = mib_from_gb(budget)

    found = live_ceiling(whole, foreign=used, floor=least, reserve=mib_from_gb(reserve))

    assert found == mib_from_gb(ceiling)
    assert shed_line(whole, foreign=used, floor=least) == mib_from_gb(line)


def test_the_budget_is_the_operators_or_all_there_is() -> None:
    assert budget_of(MiB(24), MiB(48)) == 24
    assert budget_of(None, MiB(48)) == 48


PROMISES = {
    # budget, total, floor → beyond, in GB
    "it leaves the desktop its own": (22, 24, 1.5, 0),
    "the desktop uses next to nothing": (24, 24, 0.4, 0),
    "it takes the desktop's": (24, 24, 1.5, 1.5),
    "it takes more than there is": (48, 24, 0, 24),
    "there is none": (0, 24, 1.5, 0),
}


@pytest.mark.parametrize(("budget", "total", "floor", "beyond"), PROMISES.values(), ids=PROMISES)
def test_a_budget_that_the_cards_have_not(
    budget: float, total: float, floor: float, beyond: float
) -> None:
    found = promised_beyond(
        mib_from_gb(budget) or None, total=mib_from_gb(total), floor=mib_from_gb(floor)
    )

    assert found == mib_from_gb(beyond)


RAM = {
    # total, available, private of each → ceiling
    "ours come back": (64, 20, [10, 4], 34),
    "nothing runs": (64, 50, [], 50),
    "what is read at two moments is not more than all": (64, 60, [10], 64),
}


@pytest.mark.parametrize(("total", "available", "private", "ceiling"), RAM.values(), ids=RAM)
def test_ceiling_of_the_ram(total: int, available: int, private: list[int], ceiling: int) -> None:
    ram = Ram(total=MiB(total), available=MiB(available))

    assert ram_ceiling(ram, [MiB(size) for size in private]) == ceiling
