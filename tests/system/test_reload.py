"""Another configuration while everything runs: what changes, what stays, and a file that cannot be used."""

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.support.box import Box, fake, serving, until
from tests.support.streams import numbers_in

pytestmark = pytest.mark.system


def rewrite(box: Box, **keys: Any) -> None:
    """Change keys at the top of the file."""
    path = box.folder / "config.yaml"
    path.write_text(json.dumps({**json.loads(path.read_text()), **keys}))


def models_listed(box: Box, key: str = "") -> list[str] | int:
    """What /v1/models shows, or the status that refuses."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    answer = requests.get(box.url("/v1/models"), headers=headers, timeout=5)
    if answer.status_code != 200:
        return answer.status_code
    return [model["id"] for model in answer.json()["data"]]


def test_streams_and_waiters_notice_nothing_of_a_reload(enough: Path) -> None:
    flags = f"--slots 5 --event-interval 0.1 --until {enough}"
    with (
        serving({"a": fake(flags, concurrencyLimit=5)}, vramBudgetGB=4) as box,
        ExitStack() as open_,
    ):
        pool = open_.enter_context(ThreadPoolExecutor(8))
        streams = [
            pool.submit(lambda: box.chat("a", stream=True, max_tokens=10_000).content)
            for _ in range(5)
        ]
        until(lambda: box.model("a")["inflight"] == 5)
        waiters = [
            pool.submit(lambda: box.chat("a", stream=True, max_tokens=2).content) for _ in range(3)
        ]
        until(lambda: box.model("a")["queued"] == 3)
        child = box.model("a")["pid"]

        rewrite(box, models={"a": fake(flags, concurrencyLimit=5, name="A"), "b": fake()})
        said = box.told("reload")

        assert (said["added"], said["changed"]) == (["b"], ["a"])
        assert box.model("a")["inflight"] == 5
        enough.touch()
        bodies = [stream.result(30) for stream in streams]
        assert all(body.endswith(b"data: [DONE]\n\n") for body in bodies)
        for numbers in (numbers_in(body, "fake") for body in bodies):
            assert numbers == list(range(len(numbers)))
        assert all(waiter.result(30).endswith(b"data: [DONE]\n\n") for waiter in waiters)
        assert box.model("a")["pid"] == child


def test_names_and_keys_change_while_it_runs() -> None:
    with serving({"a": fake(), "b": fake()}, listeners={"main": {"workers": 2}}) as box:
        assert box.chat("a").status_code == 200
        assert box.chat("late").status_code == 404

        rewrite(box, models={"a": fake(aliases=["late"])}, apiKeys=["k1"])
        ran = box.run("reload")

        assert ran.stdout == "reloaded: removed b; changed a; settings listeners.main\n"
        for _ in range(5):  # either worker
            until(lambda: models_listed(box) == 401)
            until(lambda: models_listed(box, "k1") == ["a"])
        headers = {"Authorization": "Bearer k1"}
        for model, status in (("late", 200), ("b", 404)):
            body = {"model": model, "messages": [], "max_tokens": 2}
            answer = requests.post(
                box.url("/v1/chat/completions"), json=body, headers=headers, timeout=10
            )
            assert answer.status_code == status, answer.text
        assert list(box.states()) == ["a"]


def test_a_bad_file_changes_nothing_and_every_problem_is_told() -> None:
    with serving({"a": fake()}) as box:
        good = (box.folder / "config.yaml").read_text()
        rewrite(box, apiKeys=["k1"], vramBudgetGB=-1, models={"a": fake(), "b": {}})

        ran = box.run("reload")

        assert ran.returncode == 1
        assert [line.split(": ")[2] for line in ran.stderr.splitlines()] == [
            "vramBudgetGB",
            "models.b.cmd",
        ]
        assert models_listed(box) == ["a"]
        assert box.chat("a").status_code == 200
        (box.folder / "config.yaml").write_text(good)
        assert box.run("reload").stdout == "reloaded: nothing changed\n"


def test_a_removed_model_serves_its_streams_to_the_end_and_is_gone() -> None:
    models = {"a": fake("--event-interval 0.05"), "b": fake()}
    with serving(models) as box, box.chat("a", stream=True, max_tokens=60) as stream:
        lines = stream.iter_lines()
        next(lines)
        child = box.model("a")["pid"]

        rewrite(box, models={"b": fake()})
        assert box.told("reload")["removed"] == ["a"]

        assert box.chat("a").status_code == 404
        assert list(lines)[-2:] == [b"data: [DONE]", b""]
        until(lambda: list(box.states()) == ["b"])
        until(lambda: not Path(f"/proc/{child}").exists())


def test_a_raised_budget_lets_a_waiter_go_at_once() -> None:
    models = {"a": fake("--event-interval 0.05"), "b": fake()}
    with (
        serving(models, vramBudgetGB=4) as box,
        box.chat("a", stream=True, max_tokens=10_000) as stream,
        ThreadPoolExecutor(1) as pool,
    ):
        lines = stream.iter_lines()
        next(lines)
        waiting = pool.submit(box.chat, "b")
        until(lambda: box.model("b")["queued"] == 1)

        rewrite(box, vramBudgetGB=8)
        box.run("reload")

        assert waiting.result(20).status_code == 200
        assert box.model("a")["inflight"] == 1


def test_what_needs_a_restart_is_said_each_time_until_then() -> None:
    with serving({"a": fake()}) as box:
        bind = f"127.0.0.1:{box.ports['main']}"
        other = {"bind": "127.0.0.1:1", "workers": 1}
        rewrite(
            box, listeners={"main": {"bind": bind, "workers": 3}, "other": other}, startPort=9000
        )
        wanted = [
            "listeners.main.workers needs a restart",
            "listeners.other is new: it needs a restart",
            "startPort needs a restart",
        ]

        assert box.told("reload")["needs_restart"] == wanted
        assert box.run("reload").stdout.splitlines() == ["reloaded: nothing changed", *wanted]


@pytest.mark.parametrize("how", ["HUP", "--watch"])
def test_it_reloads_without_being_asked_by_a_verb(how: str) -> None:
    flags = ("--watch",) if how == "--watch" else ()
    with serving({"a": fake()}, flags=flags) as box:
        rewrite(box, models={"b": fake()})
        if how == "HUP":
            box.process.send_signal(signal.SIGHUP)

        until(lambda: models_listed(box) == ["b"])
        assert box.chat("b").status_code == 200

        rewrite(box, models={})
        if how == "HUP":
            box.process.send_signal(signal.SIGHUP)
        until(lambda: box.decisions("config.refused"))
        assert models_listed(box) == ["b"]


def test_workers_that_come_later_know_what_was_reloaded() -> None:
    with serving({"a": fake()}) as box:
        rewrite(box, models={"b": fake()})
        box.told("reload")
        until(lambda: models_listed(box) == ["b"])
        former = box.told("status")["listeners"]

        box.listener("main").send_signal(signal.SIGHUP)  # gunicorn's own: every worker anew

        until(lambda: [w["pid"] for w in box.told("status")["listeners"]] != [former[0]["pid"]])
        until(lambda: len(box.told("status")["listeners"]) == 1)
        until(lambda: models_listed(box) == ["b"])
        copies = list((box.folder / "state" / "config").iterdir())
        assert {path.stat().st_mode & 0o777 for path in copies} == {0o600}
