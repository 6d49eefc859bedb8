"""The real scheduler actor and its store: what was measured is kept, and known at the start and after a reload."""

import json
from pathlib import Path

from qmsup.actors.state_store import StateOnDisk
from qmsup.actors.tree import end_actors
from qmsup.core.scheduling.effects import Remember
from qmsup.core.scheduling.memory_events import SeenBy
from qmsup.ids import EventNumber, ModelId
from qmsup.units import MiB
from qmsup.wire.listening import Done
from tests.support.children import fake_command, fake_spec
from tests.support.scheduler_actor import ControlPeer, becomes, models_of, scheduler_of

SAYS_900 = ("--load-log", "load_tensors: CUDA0 model buffer size = 900.00 MiB")


def measured(client: ControlPeer, model: str = "m") -> object:
    return client.model(model)["vram_measured_mib"]


def remember(argv: tuple[str, ...], peak: int) -> None:
    """As a former life did."""
    StateOnDisk().remember(
        Remember(
            cause=EventNumber(1),
            model=ModelId("any"),
            argv=argv,
            peak=MiB(peak),
            ram=MiB(0),
            seen_by=SeenBy.TELEMETRY,
        )
    )
    end_actors()


def test_what_a_child_says_counts_once_it_served_and_is_known_to_the_next_life(
    places: Path, checked: None
) -> None:
    spec = models_of(fake_spec(*SAYS_900))
    with scheduler_of(spec, places) as running:
        worker, client = running.worker(), running.client()
        granted = worker.takes_up("r1")
        becomes(lambda: client.model("m")["vram_peak_mib"], 900)
        assert measured(client) is None
        worker.say(Done(request=granted.request, outcome="finished"))
        becomes(lambda: measured(client), 900)

    with scheduler_of(spec, places) as running:
        client = running.client()
        assert measured(client) == 900
        assert client.model("m")["vram_peak_mib"] is None


def test_what_a_reload_brings_is_known_soon(places: Path, checked: None) -> None:
    remember(fake_command("--name", "fresh"), 700)
    command = " ".join(fake_command("--name", "fresh"))
    content = {"models": {"n": {"cmd": command, "kind": "generic"}}}
    (places / "config.yaml").write_text(json.dumps(content))
    with scheduler_of(models_of(fake_spec()), places) as running:
        client = running.client()

        assert client.body("reload")["added"] == ["n"]

        becomes(lambda: measured(client, "n"), 700)
