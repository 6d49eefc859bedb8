"""What clients of llama-swap ask for, against a whole box with a configuration in its style."""

from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.support.box import Box, fake, serving

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    models = {
        "told": fake(
            "--load-seconds 0.6",
            name="Told",
            description="tells how it loads",
            aliases=["alias"],
            sendLoadingState=True,
            ttl=900,
            metadata={"port": "${PORT}", "who": "${MODEL_ID}"},
            capabilities={"in": ["text"], "out": ["text"], "tools": True, "context": 4096},
        ),
        "quiet": fake("--load-seconds 0.6"),
        "hidden": fake(unlisted=True),
    }
    routing: dict[str, Any] = {
        "router": {
            "use": "group",
            "settings": {"groups": {"both": {"members": ["told", "quiet"], "swap": True}}},
        }
    }
    keys: dict[str, Any] = {
        "includeAliasesInList": True,
        "logToStdout": "both",
        "captureBuffer": 5,
        "upstream": {"ignorePaths": [r"\.ico$"]},
    }
    with serving(models, routing=routing, **keys) as box:
        yield box


def get(box: Box, path: str, **keys: Any) -> requests.Response:
    return requests.get(box.url(path), timeout=20, **keys)


def running(box: Box) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = get(box, "/running").json()["running"]
    return told


def test_what_runs_is_told_in_its_fields(box: Box) -> None:
    assert box.chat("told").status_code == 200

    (entry,) = running(box)

    assert entry.items() >= {"model": "told", "state": "ready", "name": "Told", "ttl": 900}.items()
    assert entry["description"] == "tells how it loads"
    assert "child.py" in entry["cmd"]
    assert entry["proxy"] == f"http://127.0.0.1:{entry['port']}"


def test_a_group_swaps(box: Box) -> None:
    box.chat("told")
    box.chat("quiet")

    assert [entry["model"] for entry in running(box)] == ["quiet"]


def test_get_unload_stops_everything_and_says_ok(box: Box) -> None:
    box.chat("quiet")

    answer = get(box, "/unload")

    assert (answer.status_code, answer.text) == (200, "OK")
    assert running(box) == []


def test_the_list_has_aliases_metadata_abilities_and_state(box: Box) -> None:
    box.chat("told")

    data = {m["id"]: m for m in get(box, "/v1/models").json()["data"]}

    assert list(data) == ["told", "alias", "quiet"]
    told, alias = data["told"], data["alias"]
    assert told["meta"] == {
        "llamaswap": {"port": "${PORT}", "who": "told", "type": "model", "aliases": ["alias"]},
        "n_ctx": 4096,
    }
    assert told["capabilities"] == {"function_calling": True}
    assert (told["status"], data["quiet"]["status"]) == (
        {"value": "loaded"},
        {"value": "unloaded"},
    )
    assert alias["meta"]["llamaswap"]["modelID"] == "told"
    assert alias["name"] == "Told"


def test_loading_is_told_for_the_model_that_says_so_alone(box: Box) -> None:
    for model, is_told in (("told", True), ("quiet", False)):
        get(box, "/unload")
        with box.chat(model, stream=True) as answer:
            first = next(line for line in answer.iter_lines() if line)
        assert first.startswith(b": qm-status:") is is_told, first


def test_a_model_s_own_paths_are_reached(box: Box) -> None:
    assert get(box, "/upstream/told/health").status_code == 200
    assert get(box, "/upstream/alias/v1/models").json()["data"]


def test_paths_that_load_nothing_do_not(box: Box) -> None:
    get(box, "/unload")

    answer = get(box, "/upstream/told/favicon.ico")

    assert answer.json()["error"]["code"] == "model_not_loaded"
    assert running(box) == []
    box.chat("told")
    assert "model_not_loaded" not in get(box, "/upstream/told/favicon.ico").text


def test_logs_are_plain_text(box: Box) -> None:
    box.chat("told")

    assert get(box, "/logs").headers["Content-Type"].startswith("text/plain")
    with get(box, "/logs/stream/told", stream=True) as answer:
        assert answer.status_code == 200
        assert next(answer.iter_content(16))


def test_what_is_left_is_there(box: Box) -> None:
    assert get(box, "/wol-health").status_code == 200
    assert get(box, "/api/version").json()["version"]
    with get(box, "/api/events", stream=True) as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")


def test_what_means_less_here_is_in_the_log(box: Box) -> None:
    told = {line["text"].split(": ")[1] for line in box.decisions("config.remark")}

    assert told == {"logToStdout", "captureBuffer", "models.told.metadata"}
