"""The whole chain on a fake card: children take its memory, a game takes more, and the models make room for it.

The driver library is a fake one; everything from there on is real.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from qmsup.actors.replay import lives_in, replay
from qmsup.core.scheduling.memory_events import CeilingChanged
from tests.fakes.gpu import FakeCard, FakeGpu, State
from tests.support.box import Box, fake, serving, until
from tests.support.gpu import environment, holding

pytestmark = pytest.mark.system

MIB_PER_GB = 1024
BASE = 1500
TOTAL = 24 * MIB_PER_GB


@pytest.fixture(scope="module")
def gpu(tmp_path_factory: pytest.TempPathFactory) -> FakeGpu:
    gpu = FakeGpu(tmp_path_factory.mktemp("gpu"))
    gpu.show(State(cards=(FakeCard(total=TOTAL, base=BASE),)))
    return gpu


def model(mib: int) -> dict[str, Any]:
    return fake(f"--vram {mib} --load-seconds 0.3", estVramGB=mib / MIB_PER_GB)


@pytest.fixture(scope="module")
def whole(gpu: FakeGpu) -> Iterator[Box]:
    models = {"a": model(9000), "b": model(8000), "c": model(12000)}
    with serving(
        models,
        vramBudgetGB=20,
        oomGuardGraceMs=500,
        sendLoadingState=False,
        environment=environment(gpu),
    ) as box:
        yield box


@pytest.fixture
def box(whole: Box, gpu: FakeGpu) -> Box:
    """Nothing is loaded, and the card works."""
    gpu.show(State(cards=(FakeCard(total=TOTAL, base=BASE),)))
    assert whole.run("unload").returncode == 0
    until(lambda: memory(whole)["used_mib"] == BASE and memory(whole)["is_trusted"])
    assert memory(whole)["floor_mib"] == BASE
    return whole


def memory(box: Box) -> dict[str, Any]:
    told: dict[str, Any] = box.told("ps")["memory"]
    return told


def held(box: Box) -> dict[str, int]:
    rows = box.told("ps")["models"]
    return {row["name"]: row["vram_held_mib"] for row in rows if row["vram_held_mib"]}


def vram_of(box: Box) -> dict[str, float]:
    """What the metrics tell of the card, by kind."""
    lines = requests.get(box.url("/metrics"), timeout=20).text.splitlines()
    told = [line for line in lines if line.startswith('qmsup_vram_bytes{gpu="GPU-1"')]
    return {line.split('"')[3]: float(line.split()[-1]) for line in told}


def test_what_each_model_holds_is_told(box: Box) -> None:
    assert box.chat("a").status_code == 200
    until(lambda: held(box) == {"a": 9000})

    seen = memory(box)
    assert (seen["used_mib"], seen["ours_mib"]) == (BASE + 9000, 9000)
    assert seen["foreign_mib"] == seen["floor_mib"] == BASE
    assert seen["ceiling_mib"] == 20 * MIB_PER_GB
    assert seen["cards"][0]["ours_mib"] == 9000
    mib = {kind: size / 1024**2 for kind, size in vram_of(box).items()}
    assert mib == {"total": TOTAL, "used": BASE + 9000, "ours": 9000, "foreign": BASE}
    assert "8.8G by models, 1.5G by others (at rest 1.5G); ceiling 20.0G" in box.run("ps").stdout


def test_a_game_lowers_the_ceiling_so_that_the_next_load_costs_another_its_place(
    box: Box, gpu: FakeGpu
) -> None:
    box.chat("a")
    until(lambda: held(box) == {"a": 9000})

    with holding(gpu, 5000):
        until(lambda: memory(box)["foreign_mib"] == BASE + 5000)
        assert memory(box)["ceiling_mib"] == (20 - 1) * MIB_PER_GB - 5000
        assert box.chat("b").status_code == 200

    assert box.states() == {"a": "stopped", "b": "ready", "c": "stopped"}
    until(lambda: memory(box)["ceiling_mib"] == 20 * MIB_PER_GB)


def test_what_finds_no_room_beside_a_game_is_refused_and_nothing_stops_for_it(
    box: Box, gpu: FakeGpu
) -> None:
    box.chat("b")
    until(lambda: held(box) == {"b": 8000})

    with holding(gpu, 12000):
        until(lambda: memory(box)["foreign_mib"] == BASE + 12000)
        refused = box.chat("c")

    assert refused.status_code == 507
    assert refused.json()["error"]["code"] == "insufficient_vram"
    assert box.states()["b"] == "ready"
    assert not box.decisions("swap.failed")


def test_what_nobody_uses_is_unloaded_when_a_game_wants_the_memory(box: Box, gpu: FakeGpu) -> None:
    for name in ("a", "b"):
        box.chat(name)
    until(lambda: held(box) == {"a": 9000, "b": 8000})

    with holding(gpu, 5500):
        until(lambda: box.states() == {"a": "stopped", "b": "ready", "c": "stopped"})

    assert [told["model"] for told in box.decisions("model.shed")] == ["a"]


def test_a_driver_that_vanishes_and_returns_costs_nothing_but_the_readings(
    box: Box, gpu: FakeGpu
) -> None:
    box.chat("a")
    until(lambda: held(box) == {"a": 9000})

    gpu.change(init=9)
    until(lambda: not memory(box)["is_trusted"])
    assert memory(box)["because"]
    assert box.chat("b").status_code == 200

    gpu.change(init=0)
    until(lambda: held(box) == {"a": 9000, "b": 8000})
    assert memory(box)["floor_mib"] == BASE


def test_a_child_whose_use_is_hidden_makes_the_reading_untrusted(box: Box, gpu: FakeGpu) -> None:
    box.chat("a")
    until(lambda: held(box) == {"a": 9000})

    gpu.change(hidden=(box.model("a")["pid"],))

    until(lambda: not memory(box)["is_trusted"])
    seen = memory(box)
    assert "not seen on any card" in seen["because"]
    assert (seen["ours_mib"], seen["cards"][0]["ours_mib"]) == (None, None)
    assert (whose := vram_of(box)).keys() == {"total", "used"}, whose


def test_swaps_on_a_driver_that_is_slow_to_give_memory_back_lose_no_load(
    box: Box, gpu: FakeGpu
) -> None:
    gpu.change(lag_ms=400)

    for name in ("c", "a", "b", "c", "b", "a"):
        assert box.chat(name).status_code == 200
        until(lambda: memory(box)["ours_mib"])

    assert memory(box)["floor_mib"] == BASE
    assert not box.decisions("swap.failed")


def test_a_driver_that_hangs_delays_nobody(box: Box, gpu: FakeGpu) -> None:
    box.chat("a")
    until(lambda: held(box) == {"a": 9000})

    gpu.change(hang_ms=8000)
    until(lambda: not memory(box)["is_trusted"])

    assert "has not answered" in memory(box)["because"]
    assert box.chat("b").status_code == 200


def test_what_was_decided_by_what_was_read_can_be_replayed(box: Box, tmp_path: Path) -> None:
    for model in ("a", "b", "c"):
        assert box.chat(model).status_code == 200
    until(lambda: box.model("c")["vram_measured_mib"])
    dumped = tmp_path / "journal"

    assert box.run("explain", "--dump", str(dumped)).returncode == 0

    life = lives_in(dumped.read_bytes().splitlines())[-1]
    assert life.gap == ""
    readings = [each.event for each in life.turns if isinstance(each.event, CeilingChanged)]
    assert any(reading.held for reading in readings)
    assert [*replay(life)] == []
