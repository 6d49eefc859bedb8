"""The scheduler and the telemetry at work together: a game takes the memory, and what comes of it.

The card is one of the test's: each living child holds there what its command says.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qmsup.actors import watching
from qmsup.actors.state_store import StateOnDisk
from qmsup.core.scheduling import memory
from qmsup.core.vram import cadence
from qmsup.ids import ModelId, RequestId
from qmsup.spec import GroupSpec, ModelSpec, Pool, SchedulerSpec, Spec
from qmsup.units import MiB, Seconds
from qmsup.wire.listening import Done, Granted, Refused
from tests.support.children import fake_spec
from tests.support.memory import LiveCard
from tests.support.scheduler_actor import ControlPeer, RunningScheduler, becomes, scheduler_of


@pytest.fixture(autouse=True)
def often(checked: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OFTEN", "SOON", "NOW_AND_THEN", "SELDOM"):
        monkeypatch.setattr(cadence, name, Seconds(0.02))


def holding(model: str, mib: int, estimate: int = 0) -> ModelSpec:
    spec = fake_spec("--holds", str(mib), model=model)
    return replace(spec, est_vram=MiB(estimate or mib))


def box_of(*models: ModelSpec, **keys: Any) -> Spec:
    keys = {"vram_budget": MiB(24000), "scheduler": SchedulerSpec(hold=Seconds(0.0)), **keys}
    return Spec(models={model.id: model for model in models}, **keys)


class Box:
    """A scheduler with a card."""

    def __init__(self, running: RunningScheduler, card: LiveCard) -> None:
        self.card = card
        self.worker = running.worker()
        self.client: ControlPeer = running.client()

    def memory(self, what: str) -> Any:
        return self.client.body("ps")["memory"][what]

    def states(self) -> list[str]:
        return [row["state"] for row in self.client.body("ps")["models"]]

    def play(self, foreign: int) -> None:
        """A game takes memory, or gives it back; returns once that was seen."""
        self.card.foreign = foreign
        becomes(lambda: self.memory("foreign_mib"), foreign)

    def settles(self, *held: int | None) -> None:
        """Wait until the readings show what each model holds."""
        becomes(lambda: [r["vram_held_mib"] for r in self.client.body("ps")["models"]], [*held])

    def load(self, *models: str) -> None:
        for model in models:
            self.client.body("load", model=model)


@pytest.fixture
def spec() -> Spec:
    return box_of(holding("a", 9000), holding("b", 8000), holding("c", 12000))


@pytest.fixture
def box(places: Path, spec: Spec) -> Iterator[Box]:
    card = LiveCard()
    with scheduler_of(spec, places, open_reader=lambda: card) as running:
        box = Box(running, card)
        becomes(lambda: box.memory("is_trusted"), True)
        yield box
        assert not running.broke.is_set()


def test_what_children_hold_is_shown_and_is_not_foreign(box: Box) -> None:
    box.load("a", "b")
    box.settles(9000, 8000, None)

    memory = box.client.body("ps")["memory"]
    assert (memory["used_mib"], memory["ours_mib"], memory["foreign_mib"]) == (18500, 17000, 1500)
    assert (memory["free_mib"], memory["ceiling_mib"], memory["floor_mib"]) == (5500, 24000, 1500)
    assert box.client.model("a")["vram_peak_mib"] == 9000
    becomes(lambda: (box.client.model("a")["ram_mib"] or 0) > 0, True)
    (row, _) = box.client.body("running")["running"]
    assert row["vram_held_mib"] == 9000


def test_a_game_costs_an_idle_model_its_place_when_another_is_wanted(box: Box) -> None:
    box.load("a")
    box.settles(9000, None, None)

    box.play(9500)
    assert box.memory("ceiling_mib") == 24000 - 8000 - 1024
    box.worker.ask("r1", "b")

    assert box.worker.hears(Granted).model == "b"
    assert box.states() == ["stopped", "ready", "stopped"]


def test_what_finds_no_room_beside_a_game_is_refused_before_anything_stops(box: Box) -> None:
    box.load("a")
    box.settles(9000, None, None)

    box.play(13500)
    box.worker.ask("r1", "c")

    refused = box.worker.hears(Refused)
    assert refused.code == "insufficient_vram"
    assert "needs 12000 MiB of GPU memory and finds 10500 MiB" in refused.message
    assert box.states() == ["ready", "stopped", "stopped"]


def test_a_swap_waits_for_the_memory_of_what_it_stopped(box: Box) -> None:
    box.card.lag = 0.3
    for model in ("c", "a", "b", "c"):
        box.load(model)
        becomes(lambda: box.memory("ours_mib") > 0, True)
    box.settles(None, 8000, 12000)

    assert box.card.fullest <= box.card.total
    assert box.memory("foreign_mib") == box.memory("floor_mib") == 1500


@pytest.mark.parametrize(
    "spec",
    [box_of(holding("a", 9000), holding("b", 8000), oom_guard_grace=Seconds(0.1))],
    ids=["a grace of 100 ms"],
)
def test_what_nobody_uses_is_unloaded_when_a_game_wants_the_memory(box: Box) -> None:
    box.load("a", "b")
    box.worker.takes_up("r1", "a")
    box.settles(9000, 8000)

    box.card.foreign = 13500

    becomes(box.states, ["ready", "stopped"])
    (shed,) = [
        told
        for told in box.client.body("explain", model="b")["story"]
        if "others want the GPU" in told["text"]
    ]
    assert "b" in shed["text"]


def test_without_a_reading_the_budget_alone_counts(box: Box) -> None:
    box.load("a")
    box.play(13500)

    box.card.fails = True
    becomes(lambda: box.memory("is_trusted"), False)
    assert "the bus is gone" in box.memory("because")
    box.worker.ask("r1", "c")
    assert box.worker.hears(Granted).model == "c"

    box.card.fails = False
    becomes(lambda: box.memory("ceiling_mib"), 24000 - 12000 - 1024)


def test_a_measured_model_is_charged_what_it_was_seen_to_hold(places: Path) -> None:
    card = LiveCard()
    spec = box_of(holding("a", 9000, estimate=20000), holding("b", 8000))
    with scheduler_of(spec, places, open_reader=lambda: card) as running:
        box = Box(running, card)
        box.worker.takes_up("r1", "a")
        box.settles(9000, None)
        box.worker.say(Done(request=RequestId("r1"), outcome="finished"))
        becomes(lambda: box.client.model("a")["vram_measured_mib"], 9000)

        box.load("b")

        assert box.states() == ["ready", "ready"]


def test_the_ram_pool_is_held_to_what_the_machine_has(places: Path) -> None:
    models = [replace(fake_spec(model=name), est_ram=MiB(30000)) for name in "ab"]
    pool = GroupSpec(id="cpu", members=(ModelId("a"), ModelId("b")), pool=Pool.RAM)
    spec = box_of(*models, ram_budget=MiB(64000), groups=(pool,))
    card = LiveCard()
    with scheduler_of(spec, places, open_reader=lambda: card) as running:
        box = Box(running, card)
        becomes(lambda: box.memory("ram_available_mib"), 50000)
        box.load("a", "b")
        becomes(box.states, ["stopped", "ready"])


def test_a_game_that_began_since_the_last_look_is_seen_before_anything_is_spawned(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SOON", "NOW_AND_THEN", "SELDOM"):
        monkeypatch.setattr(cadence, name, Seconds(60.0))
    monkeypatch.setattr(memory, "FRESH_FOR", Seconds(0.0))
    box.settles(None, None, None)
    box.card.foreign = 20000

    box.worker.ask("r1", "b")

    assert "finds 4000 MiB" in box.worker.hears(Refused).message
    assert box.states() == ["stopped", "stopped", "stopped"]


def test_a_telemetry_that_breaks_is_started_anew_and_meanwhile_the_budget_counts(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    box.play(9500)
    monkeypatch.setattr(watching, "_DOES_WELL", Seconds(0.0))
    monkeypatch.setattr(watching, "_FIRST_PAUSE", Seconds(0.1))

    with monkeypatch.context() as broken:
        broken.setattr(LiveCard, "read", lambda *_: "a fault of ours")
        becomes(lambda: box.memory("is_trusted"), False)
        assert "is started anew" in box.memory("because")

    becomes(lambda: box.memory("is_trusted"), True)
    assert (box.memory("floor_mib"), box.memory("ceiling_mib")) == (1500, 24000 - 8000 - 1024)


def test_a_game_is_not_forgotten_when_the_scheduler_dies(places: Path, spec: Spec) -> None:
    card = LiveCard()
    with scheduler_of(spec, places, open_reader=lambda: card) as running:
        client, store = running.client(), StateOnDisk()
        becomes(lambda: client.body("ps")["memory"]["floor_mib"], 1500)
        becomes(lambda: '"floor": [[["u1"], 1500]]' in store.standing(), wanted=True)

    card.foreign = 9500
    with scheduler_of(spec, places, open_reader=lambda: card) as running:
        client = running.client("ctl-2-x")
        becomes(lambda: client.body("ps")["memory"]["foreign_mib"], 9500)
        seen = client.body("ps")["memory"]

    assert (seen["floor_mib"], seen["ceiling_mib"]) == (1500, 24000 - 8000 - 1024)
