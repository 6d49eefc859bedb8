"""Bodies of answers, made of the core's real state; over the socket they are in test_verbs.py."""

from pathlib import Path
from typing import Any

import pytest

from qmsup.actors import answers
from qmsup.actors.life import Life
from qmsup.core.vram.attribution import Share
from qmsup.core.vram.reading import ChildRam, Reading
from qmsup.core.vram.sample import Card
from qmsup.ids import Epoch, Incarnation, ModelId
from qmsup.spec import ModelSpec, Spec
from qmsup.units import MiB, Seconds
from tests.support.scheduling import Desk, spec_of

A, B = ModelId("a"), ModelId("b")
LIFE = Life(epoch=Epoch(7), endpoint="ipc:///nowhere", config=Path("/etc/q.yaml"), since=1.5)


@pytest.fixture
def desk() -> Desk:
    return Desk(spec_of("a b c", sizes={"a": 5000}))


def rows(desk: Desk) -> dict[str, Any]:
    body = answers.ps(desk.scheduler.state, desk.scheduler.state.spec, Seconds(desk.now))
    models = body["models"]
    assert isinstance(models, list)
    return {row["name"]: row for row in models}


def running(desk: Desk) -> list[Any]:
    body = answers.running(desk.scheduler.state, desk.scheduler.state.spec, Seconds(desk.now))
    models = body["running"]
    assert isinstance(models, list)
    return models


def test_a_model_s_row_follows_its_child(desk: Desk) -> None:
    assert rows(desk)["a"]["state"] == "stopped"
    assert rows(desk)["a"]["vram_mib"] is None

    desk.say("r1 asks a")
    assert (rows(desk)["a"]["state"], rows(desk)["a"]["queued"]) == ("starting", 1)
    assert rows(desk)["a"]["age_s"] is None, "no child of it is known yet"
    desk.say("a1 starting")
    desk.say("a1 ready")
    desk.now = 2.5
    row = rows(desk)["a"]

    assert (row["state"], row["inflight"], row["queued"]) == ("ready", 1, 0)
    assert (row["pid"], row["port"], row["vram_mib"], row["age_s"]) == (1001, 5801, 5000, 2.5)


def test_what_was_measured_stands_beside_the_estimate(desk: Desk) -> None:
    for said in ("r1 asks a", "a1 starting", "a1 ready", "peak a1 4700", "r1 ends", "peak a1 4800"):
        desk.say(said)

    row = rows(desk)["a"]
    sizes = ("vram_mib", "vram_estimated_mib", "vram_measured_mib", "vram_peak_mib", "ram_mib")
    assert [row[size] for size in sizes] == [4800, 5000, 4800, 4800, None]


SEEN = Reading(
    because="",
    total=MiB(24000),
    used=MiB(9000),
    free=MiB(15000),
    foreign=MiB(4000),
    floor=MiB(1500),
    ceiling=MiB(20000),
    held={Incarnation(1): MiB(5000)},
    shares=(
        Share(card=Card(uuid="u1", name="card", total=MiB(24000), used=MiB(9000)), ours=MiB(5000)),
    ),
    ram_total=MiB(64000),
    ram_available=MiB(50000),
    ram={Incarnation(1): ChildRam(resident=MiB(812), private=MiB(300))},
)


def test_what_was_read_of_the_memory_is_shown(desk: Desk) -> None:
    for said in ("r1 asks a", "a1 starting", "a1 ready"):
        desk.say(said)
    state = desk.scheduler.state

    body = answers.reading("ps", state, state.spec, LIFE, Seconds(0.0), SEEN)
    running = answers.reading("running", state, state.spec, LIFE, Seconds(0.0), SEEN)

    assert body is not None
    assert running is not None
    row: Any = body["models"]
    assert [each["vram_held_mib"] for each in row] == [5000, None, None]
    assert [each["vram_held_mib"] for each in running["running"]] == [5000]  # type: ignore[attr-defined]
    assert body["memory"] == {
        "is_trusted": True,
        "because": None,
        "total_mib": 24000,
        "used_mib": 9000,
        "free_mib": 15000,
        "ours_mib": 5000,
        "foreign_mib": 4000,
        "floor_mib": 1500,
        "ceiling_mib": 20000,
        "ram_total_mib": 64000,
        "ram_available_mib": 50000,
        "ram_ours_mib": 812,
        "cards": [
            {"uuid": "u1", "name": "card", "total_mib": 24000, "used_mib": 9000, "ours_mib": 5000}
        ],
    }


def test_what_was_not_read_is_null(desk: Desk) -> None:
    body = answers.memory(Reading(because="no GPU can be read"))

    assert (body["is_trusted"], body["because"]) == (False, "no GPU can be read")
    assert (body["total_mib"], body["ours_mib"], body["cards"]) == (None, None, [])


def test_a_model_whose_size_is_not_known_has_none(desk: Desk) -> None:
    for said in ("r1 asks b", "b1 starting", "b1 ready"):
        desk.say(said)

    assert rows(desk)["b"]["vram_mib"] is None


def test_a_box_that_is_drained_says_so(desk: Desk) -> None:
    def told() -> list[object]:
        state = desk.scheduler.state
        bodies = (answers.status(state, LIFE), answers.ps(state, state.spec, Seconds(0.0)))
        return [body["draining"] for body in bodies]

    assert told() == [False, False]
    desk.say("close x")
    assert told() == [True, True]


def test_the_command_that_runs_is_told_with_its_port() -> None:
    argv = ("llama-server", "-m", "my model.gguf", "--port", "${PORT}")
    desk = Desk(Spec(models={A: ModelSpec(id=A, argv=argv)}))
    desk.say("r1 asks a")
    desk.say("a1 starting")

    (row,) = running(desk)

    assert row["cmd"] == f"llama-server -m 'my model.gguf' --port {row['port']}"


def test_a_failed_model_tells_why_and_is_not_running(desk: Desk) -> None:
    for said in ("r1 asks a", "a1 starting"):
        desk.say(said)
    (row,) = running(desk)
    assert (row["model"], row["state"], row["proxy"]) == ("a", "starting", "")

    desk.say("a1 fails out of memory")

    assert rows(desk)["a"]["state"] == "failed"
    assert "exited with 1" in rows(desk)["a"]["error"]
    assert running(desk) == []


def test_status_tells_this_life(desk: Desk) -> None:
    desk.say("w1 joins")
    desk.say("r1 asks a")

    body = answers.status(desk.scheduler.state, LIFE)

    assert (body["epoch"], body["since"], body["config"]) == (7, 1.5, "/etc/q.yaml")
    assert body["listeners"] == [
        {"name": "main", "worker": "w1", "pid": 77, "waiting": 1, "held": 0}
    ]


def test_an_unload_stops_those_that_have_a_child(desk: Desk) -> None:
    for said in ("r1 asks a", "a1 starting", "a1 ready"):
        desk.say(said)
    state = desk.scheduler.state

    def with_child(*models: ModelId) -> list[ModelId]:
        return answers.with_child(state, state.spec, Seconds(0.0), models)

    assert with_child() == ["a"]
    assert with_child(A, B) == ["a"]
    assert with_child(B) == []


def test_names_are_resolved_by_alias_and_strangers_are_left_to_the_scheduler() -> None:
    spec = Spec(models={A: ModelSpec(id=A, argv=("child",), aliases=("alias",))})

    assert answers.model_of("load", {"model": "alias"}, spec) == "a"
    assert answers.model_of("load", {"model": "stranger"}, spec) == "stranger"
    assert answers.models_of({"models": ["alias", "x"], "drain": True}, spec) == (("a", "x"), True)
    assert answers.models_of({}, spec) == ((), False)
