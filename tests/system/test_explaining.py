"""Why a request waits, told by a whole box: by the command line, over HTTP, and from the journal afterwards."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from qmsup.actors.replay import lives_in, replay
from tests.support.box import Box, fake, serving, until
from tests.support.streams import RawStream

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    models = {
        "busy": fake("--name busy --event-interval 0.02", concurrencyLimit=1),
        "wanted": fake("--name wanted"),
        "hidden": fake("--name hidden"),
    }
    listeners: dict[str, dict[str, Any]] = {"main": {}, "other": {"groups": ["few"]}}
    groups = {"few": {"members": ["hidden"], "swap": False, "exclusive": False}}
    with serving(
        models, listeners=listeners, groups=groups, vramBudgetGB=4, sendLoadingState=True
    ) as box:
        yield box


def _queue(box: Box, listener: str = "main") -> Any:
    return requests.get(box.url("/api/queue", listener), timeout=5).json()["queue"]


def _dumped(box: Box, file: Path) -> list[bytes]:
    ran = box.run("explain", "--dump", str(file))
    assert ran.returncode == 0, ran.stderr
    return file.read_bytes().splitlines()


def test_a_waiting_request_is_explained_while_it_waits_and_afterwards(
    box: Box, tmp_path: Path
) -> None:
    with RawStream(box, "busy") as first:
        first.until_seen(b"busy1 ")
        with RawStream(box, "wanted", max_tokens=3) as second:
            second.until_seen(b": qm-status: waiting 1")
            (place,) = box.told("queue")["queue"]
            table = box.run("queue").stdout
            explained = box.run("explain", "wanted")
            story = box.run("explain", "--request", place["request"])
            over_http = requests.get(box.url("/api/explain/wanted"), timeout=5).json()
            elsewhere = _queue(box, "other")
            first.leave()
            second.until_seen(b"data: [DONE]")

    assert (place["position"], place["model"], place["listener"]) == (1, "wanted", "main")
    assert place["because"] == "busy"
    assert [place] != elsewhere == []
    assert place["request"] in table
    assert explained.returncode == 0, explained.stderr
    assert "wanted needs 3 072 MiB; 3 072 MiB of 4 096 MiB VRAM are in use" in explained.stdout
    assert "busy goes: the coldest of those left, it frees 3 072 MiB" in explained.stdout
    assert "busy would have to stop and has 1 request in flight" in explained.stdout
    assert over_http["evicts"] == ["busy"]
    assert f"{place['request']}, for wanted" in story.stdout
    assert "at place 1 of 1" in story.stdout

    def ended() -> str:
        told = box.run("explain", "--request", place["request"]).stdout
        return told if "ended: finished" in told else ""

    told = until(ended)
    assert "loading wanted for" in told
    assert "busy stopped for it" in told
    assert "granted after" in told
    assert "busy is stopped" in box.run("explain", "busy").stdout


def test_who_is_unknown_is_told_so(box: Box) -> None:
    nobody = box.run("explain", "--request", "q-nobody")
    wrong = box.run("explain", "wantde")

    assert (nobody.returncode, wrong.returncode) == (1, 1)
    assert "the journal goes back to" in nobody.stderr
    assert "did you mean 'wanted'" in wrong.stderr
    assert requests.get(box.url("/api/explain/wanted", "other"), timeout=5).status_code == 404


def test_a_dumped_journal_replays_to_the_same_effects(box: Box, tmp_path: Path) -> None:
    for model in ("busy", "wanted", "busy", "hidden"):
        assert box.chat(model, max_tokens=2).status_code == 200

    life = lives_in(_dumped(box, tmp_path / "journal"))[-1]

    assert life.gap == ""
    assert len(life.turns) > 20
    assert [*replay(life)] == []


def test_a_scheduler_that_was_killed_is_explained_by_the_next(box: Box, tmp_path: Path) -> None:
    answer = box.chat("wanted", max_tokens=2)
    request = answer.headers["X-QM-Request-Id"]
    # What a scheduler has in hand when it is killed is lost: half a second at most.
    _dumped(box, tmp_path / "before")
    box.kill_scheduler()

    story = box.told("explain", "--request", request)["story"]

    assert [told["epoch"] for told in story] == [1] * len(story)
    assert any("granted" in told["text"] for told in story)
    lives = lives_in(_dumped(box, tmp_path / "after"))
    assert [life.header is not None and life.header.epoch for life in lives] == [1, 2]
    assert "sk-" not in json.dumps([str(life) for life in lives])
    assert box.run("unload").returncode == 0  # the next one goes on with what ran
