"""The same chain on a card of another make: the kernel's files are made up, and what reads them is not."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qmsup.telemetry.reading import ROOT_VARIABLE
from tests.fakes.gpu import FakeCard, FakeGpu, State
from tests.support.box import Box, fake, serving, until
from tests.support.gpu import holding
from tests.support.machine import FakeMachine

pytestmark = pytest.mark.system

TOTAL = 24 * 1024
BASE = 1500


@pytest.fixture
def gpu(tmp_path: Path) -> FakeGpu:
    gpu = FakeGpu(tmp_path)
    gpu.show(State(cards=(FakeCard(total=TOTAL, base=BASE),)))
    return gpu


@pytest.fixture
def box(gpu: FakeGpu, tmp_path: Path) -> Iterator[Box]:
    models = {
        name: fake(f"--fake-gpu {gpu.file} --vram {mib} --load-seconds 0.3", estVramGB=mib / 1024)
        for name, mib in {"a": 9000, "b": 8000}.items()
    }
    machine = FakeMachine(tmp_path / "machine")
    variables = {ROOT_VARIABLE: str(machine.root), "CUDA_VISIBLE_DEVICES": ""}
    with (
        machine.follows(gpu),
        serving(models, vramBudgetGB=20, environment=variables) as box,
    ):
        yield box


def memory(box: Box) -> dict[str, Any]:
    told: dict[str, Any] = box.told("ps")["memory"]
    return told


def test_models_on_it_make_room_for_what_others_take(box: Box, gpu: FakeGpu) -> None:
    until(lambda: memory(box)["used_mib"] == BASE)
    assert box.chat("a").status_code == 200
    until(lambda: memory(box)["ours_mib"] == 9000)
    assert (memory(box)["is_trusted"], memory(box)["foreign_mib"]) == (True, BASE)

    with holding(gpu, 5000):
        until(lambda: memory(box)["foreign_mib"] == BASE + 5000)
        assert memory(box)["ceiling_mib"] == 19 * 1024 - 5000
        assert box.chat("b").status_code == 200

    assert box.states() == {"a": "stopped", "b": "ready"}
    until(lambda: memory(box)["ceiling_mib"] == 20 * 1024)
