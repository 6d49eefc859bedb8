"""A reload through the real scheduler actor: what it answers, and what it leaves alone."""

import json
from pathlib import Path

from qmsup.actors.signalled import reload_of, shutdown_of
from qmsup.wire.listening import Configured, Done, Granted, Refused
from tests.support.children import fake_spec
from tests.support.scheduler_actor import QUICK, becomes, models_of, scheduler_of


def write(places: Path, *models: str, **keys: object) -> None:
    command = " ".join(fake_spec().argv)
    content = {"models": {m: {"cmd": command, "kind": "generic"} for m in models}, **keys}
    (places / "config.yaml").write_text(json.dumps(content))


def test_what_changed_is_told_and_workers_hear_of_the_version(places: Path, checked: None) -> None:
    write(places, "n", vramBudgetGB=8)
    with scheduler_of(models_of(QUICK), places) as running:
        worker, client = running.worker(), running.client()
        granted = worker.takes_up("r1")

        body = client.body("reload")

        assert (body["added"], body["removed"]) == (["n"], ["m"])
        configured = worker.hears(Configured)
        assert configured.version == body["version"]
        assert Path(configured.path).read_text() == (places / "config.yaml").read_text()
        worker.ask("r2")
        assert worker.hears(Refused).code == "model_not_found"
        assert client.model("m")["inflight"] == 1
        worker.say(Done(request=granted.request, outcome="finished"))
        becomes(lambda: [row["name"] for row in client.body("ps")["models"]], ["n"])
        worker.ask("r3", "n")
        assert worker.hears(Granted).model == "n"


def test_a_bad_file_is_refused_line_by_line_and_nothing_changes(places: Path) -> None:
    write(places, startPort=0)
    with scheduler_of(models_of(QUICK), places) as running:
        client = running.client()

        code, message = client.refusal("reload")

        assert code == "config_invalid"
        assert "startPort: must be at least 1" in message
        assert [row["name"] for row in client.body("ps")["models"]] == ["m"]
        assert running.worker().listens() == []

        (places / "config.yaml").unlink()
        assert "cannot be read" in client.refusal("reload")[1]


def test_a_signal_reloads_without_anybody_to_answer(places: Path) -> None:
    write(places, "n")
    with scheduler_of(models_of(QUICK), places) as running:
        worker = running.worker()

        reload_of(running.ref)

        worker.hears(Configured)
        assert running.client().model("n")["state"] == "stopped"


def test_a_scheduler_that_ends_leaves_the_file_to_the_next(places: Path) -> None:
    write(places, "n")
    with scheduler_of(models_of(QUICK), places) as running:
        worker, client = running.worker(), running.client()
        worker.takes_up("r1")
        shutdown_of(running.ref, at_once=False)

        assert client.refusal("reload")[0] == "shutting_down"
