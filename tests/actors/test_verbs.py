"""What control clients ask and are answered, over the real socket."""

import os
import re
import shlex
import time
from pathlib import Path
from typing import Any

import pytest

import qmsup
from qmsup.actors import scheduler as scheduler_module
from qmsup.units import Seconds
from qmsup.wire import bodies, codec
from qmsup.wire.listening import (
    Done,
    Moved,
)
from tests.support.children import is_alive
from tests.support.scheduler_actor import (
    EPOCH,
    QUICK,
    ControlPeer,
    RunningScheduler,
    WorkerPeer,
    becomes,
)


def test_status_tells_the_process_and_its_workers(
    worker: WorkerPeer, client: ControlPeer, places: Path
) -> None:
    worker.takes_up("r1")
    worker.ask("r2", "slow")
    worker.hears(Moved)

    body = client.body("status")

    since = body.pop("since")
    assert body.pop("mishaps") == []
    assert 0 <= time.time() - since < 60
    assert body == {
        "pid": os.getpid(),
        "epoch": EPOCH,
        "version": qmsup.__version__,
        "config": str(places / "config.yaml"),
        "draining": False,
        "listeners": [
            {
                "name": "main",
                "worker": "main-1-abc",
                "pid": os.getpid(),
                "waiting": 1,
                "held": 1,
            }
        ],
    }
    assert codec.read_body({**body, "since": since}, bodies.Status).epoch == EPOCH


def test_ps_tells_every_model_in_the_order_of_the_file(
    worker: WorkerPeer, client: ControlPeer
) -> None:
    worker.takes_up("r1")

    body = client.body("ps")

    assert body["vram_budget_mib"] == 4000
    assert body["memory"]["because"] == "no memory is read here"
    ready, *others = body["models"]
    pid, port, age = ready["pid"], ready["port"], ready["age_s"]
    assert is_alive(pid)
    assert port > 0
    assert 0 <= age < 60
    assert ready == {
        "name": "m",
        "state": "ready",
        "closing": None,
        "pid": pid,
        "port": port,
        "vram_mib": 3000,
        "vram_estimated_mib": 3000,
        "vram_measured_mib": None,
        "vram_peak_mib": None,
        "vram_held_mib": None,
        "ram_mib": None,
        "ctx": None,
        "inflight": 1,
        "queued": 0,
        "hold_s": None,
        "ttl_s": None,
        "pinned": False,
        "age_s": age,
        "error": None,
    }
    assert [(row["name"], row["state"]) for row in others] == [
        ("slow", "stopped"),
        ("broken", "stopped"),
    ]
    assert all(row["pid"] is row["vram_mib"] is row["age_s"] is None for row in others)
    assert codec.read_body(body, bodies.Ps).models[0].pid == pid


def test_running_tells_the_models_that_have_a_child(
    worker: WorkerPeer, client: ControlPeer
) -> None:
    assert client.body("running") == {"running": []}
    granted = worker.takes_up("r1")

    (row,) = client.body("running")["running"]

    assert row == {
        "model": "m",
        "state": "ready",
        "cmd": shlex.join(QUICK.argv).replace("'${PORT}'", f"{row['port']}"),
        "proxy": f"http://{granted.upstream}",
        "ttl": 0,
        "name": "The Model",
        "description": "for tests",
        "pid": row["pid"],
        "port": int(granted.upstream.rpartition(":")[2]),
        "inflight": 1,
        "vram_held_mib": None,
    }


def test_a_load_is_answered_when_the_model_is_ready_and_an_unload_when_it_is_gone(
    client: ControlPeer,
) -> None:
    assert client.body("load", model="m") == {"model": "m", "text": "m is ready"}
    pid = client.model()["pid"]

    assert client.body("unload", models=[]) == {"stopped": ["m"], "text": "unloaded"}

    assert not is_alive(pid)
    assert client.body("unload", models=["m"], drain=True) == {"stopped": [], "text": "unloaded"}


def test_a_drain_lets_what_is_under_way_end(worker: WorkerPeer, client: ControlPeer) -> None:
    granted = worker.takes_up("r1")
    asked = client.send("unload", {"models": ["m"], "drain": True})
    becomes(lambda: client.model()["state"], "ready")

    worker.say(Done(request=granted.request, outcome="finished"))

    assert client.answer_to(asked).body == {"stopped": ["m"], "text": "unloaded"}


WRONG_QUESTIONS: dict[str, tuple[str, dict[str, object], str, str]] = {
    "a verb that is none": ("dance", {}, "bad_request", "'dance'.*ping, status, ps"),
    "a load of nothing": ("load", {}, "bad_request", 'load: "model" must be'),
    "a load of a number": ("load", {"model": 7}, "bad_request", 'load: "model" must be'),
    "a load of what is not there": ("load", {"model": "mm"}, "model_not_found", "'mm'"),
    "a load that fails": ("load", {"model": "broken"}, "model_load_failed", "broken"),
    "an unload of a name": ("unload", {"models": "m"}, "bad_request", 'unload: "models" must be'),
    "an unload of numbers": ("unload", {"models": [1]}, "bad_request", 'unload: "models" must be'),
    "a drain of words": ("unload", {"drain": "yes"}, "bad_request", 'unload: "drain" must be'),
    "an unload of what is not there": ("unload", {"models": ["x"]}, "model_not_found", "'x'"),
}


def test_a_wrong_question_is_refused_in_words(client: ControlPeer, subtests: Any) -> None:
    for name, (verb, args, code, words) in WRONG_QUESTIONS.items():
        with subtests.test(name):
            refused, message = client.refusal(verb, **args)
            assert refused == code
            assert re.search(words, message)
    assert client.body("ping") == {}


def test_a_load_whose_asker_is_gone_is_given_up(
    client: ControlPeer, running: RunningScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler_module, "_ASKED_AGAIN", Seconds(0.1))
    staying = running.client("ctl-2-abc")
    client.send("load", {"model": "slow"})
    becomes(lambda: staying.model("slow")["queued"], 0)

    running.worker().takes_up("r1")  # the load is in its way no more
    assert staying.model("slow")["state"] == "stopped"


def test_a_load_that_is_asked_for_again_and_again_goes_on(
    client: ControlPeer, running: RunningScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler_module, "_ASKED_AGAIN", Seconds(0.3))
    other = running.client("ctl-2-abc")
    asked = client.send("load", {"model": "slow"})
    until = time.monotonic() + 1.0

    while time.monotonic() < until:
        client.send("load", {"model": "slow"}, id_=asked)
        assert other.model("slow")["queued"] == 1
