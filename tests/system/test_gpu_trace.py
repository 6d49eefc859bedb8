"""Clients that want now this model, now that one, on a card that all of them do not fit on together.

The fake card takes no more than it has: a load that finds no memory dies there, as it would on a real one. And its
driver is slow to give memory back.
"""

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.fakes.gpu import FakeCard, FakeGpu, State
from tests.support.box import Box, fake, serving
from tests.support.gpu import environment

pytestmark = pytest.mark.system

SIZES = {"a": 9000, "b": 8000, "c": 12000, "d": 3000}
BASE, TOTAL = 1500, 24576
CLIENTS, REQUESTS = 4, 10


def test_no_load_dies_of_memory(tmp_path: Path) -> None:
    gpu = FakeGpu(tmp_path)
    gpu.show(State(cards=(FakeCard(total=TOTAL, base=BASE),), lag_ms=300))
    models = {
        name: fake(f"--vram {mib} --load-seconds 0.3 --event-interval 0.02", estVramGB=mib / 1024)
        for name, mib in SIZES.items()
    }
    scheduler = {"holdMs": 0}
    with (
        serving(models, vramBudgetGB=22, scheduler=scheduler, environment=environment(gpu)) as box,
        ThreadPoolExecutor(CLIENTS) as pool,
    ):
        told = [
            code for codes in pool.map(lambda n: _asks(box, n), range(CLIENTS)) for code in codes
        ]

        memory = box.told("ps")["memory"]
        assert told == [200] * CLIENTS * REQUESTS
        assert len(box.decisions("swap.done")) > len(SIZES)
        assert memory["floor_mib"] == BASE
        assert memory["ceiling_mib"] == 22 * 1024
        assert {d["because"] for d in box.decisions("memory.ceiling")} == {"22528 MiB"}


def _asks(box: Box, client: int) -> list[int]:
    dice = random.Random(client)
    return [
        box.chat(dice.choice([*SIZES]), max_tokens=dice.choice([1, 8, 30])).status_code
        for _ in range(REQUESTS)
    ]
