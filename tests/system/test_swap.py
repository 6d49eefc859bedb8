"""The whole path with two real llama-servers that do not fit the budget together."""

import json
from collections.abc import Iterator

import openai
import pytest
import requests

from tests.support.box import Box, real, serving

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    models = {"alpha": real("alpha"), "bravo": real("bravo", aliases=["gpt-4o-mini"])}
    with serving(models, listeners={"main": {}, "other": {}}, vramBudgetGB=4) as box:
        yield box


def test_a_model_is_loaded_on_demand_and_answers_in_its_own_words(box: Box) -> None:
    answer = box.chat("alpha")

    assert answer.status_code == 200
    assert "alpha" in answer.json()["choices"][0]["message"]["content"]
    assert answer.headers["X-QM-Model"] == "alpha"
    assert answer.headers["X-QM-Host"] == "local"
    assert answer.headers["X-QM-Request-Id"]


def test_asking_the_other_port_for_the_other_model_evicts_the_first(box: Box) -> None:
    box.chat("alpha")

    answer = box.chat("bravo", "other")

    assert "bravo" in answer.json()["choices"][0]["message"]["content"]
    assert answer.headers["X-QM-Model-Loaded"] == "1"
    assert int(answer.headers["X-QM-Wait-Ms"]) > 0
    assert box.states() == {"alpha": "stopped", "bravo": "ready"}
    assert any(
        d["model"] == "bravo" and d["evicts"] == "alpha" for d in box.decisions("swap.started")
    )


def test_a_ready_model_costs_no_load(box: Box) -> None:
    box.chat("alpha")

    answer = box.chat("alpha")

    assert answer.headers["X-QM-Model-Loaded"] == "0"


def test_a_stream_passes_as_the_child_wrote_it(box: Box) -> None:
    with box.chat("alpha", stream=True) as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        assert answer.headers["X-Accel-Buffering"] == "no"
        events = [line for line in answer.iter_lines() if line.startswith(b"data: ")]

    assert events[-1] == b"data: [DONE]"
    first = json.loads(events[0].removeprefix(b"data: "))
    assert first["object"] == "chat.completion.chunk"


def test_the_openai_sdk_works(box: Box) -> None:
    client = openai.OpenAI(base_url=box.url("/v1"), api_key="none", max_retries=0)

    said = client.chat.completions.create(
        model="gpt-4o-mini", messages=[{"role": "user", "content": "hi"}], max_tokens=8
    )
    chunks = list(
        client.chat.completions.create(
            model="bravo",
            messages=[{"role": "user", "content": "hi"}],
            max_tokens=8,
            stream=True,
        )
    )
    text = client.completions.create(model="bravo", prompt="hi", max_tokens=4)

    assert "bravo" in (said.choices[0].message.content or "")
    assert any("bravo" in (c.choices[0].delta.content or "") for c in chunks if c.choices)
    assert text.choices[0].text
    assert [m.id for m in client.models.list()] == ["alpha", "bravo"]
    with pytest.raises(openai.NotFoundError, match="alpha"):
        client.chat.completions.create(model="alpa", messages=[{"role": "user", "content": "hi"}])
    client.close()


def test_completion_of_the_child_s_own_kind_works(box: Box) -> None:
    answer = requests.post(
        box.url("/completion"), json={"model": "alpha", "prompt": "hi", "n_predict": 4}, timeout=60
    )

    assert answer.status_code == 200
    assert answer.json()["content"]


def test_unload_over_http_stops_the_model(box: Box) -> None:
    box.chat("alpha")

    assert requests.post(box.url("/api/models/unload/alpha"), timeout=60).status_code == 200
    assert box.states()["alpha"] == "stopped"


def test_the_command_line_loads_shows_and_unloads(box: Box) -> None:
    assert box.run("load", "bravo").returncode == 0
    row = box.model("bravo")
    assert (row["state"], row["inflight"], row["queued"]) == ("ready", 0, 0)
    assert row["pid"]
    status = box.told("status")
    assert (status["epoch"], {x["name"] for x in status["listeners"]}) == (1, {"main", "other"})
    running = requests.get(box.url("/running"), timeout=10).json()["running"]
    assert [r["model"] for r in running] == ["bravo"]
    assert "bravo" in box.run("ps").stdout
    assert "llama" in box.run("logs", "bravo").stdout

    assert box.run("unload").returncode == 0
    assert set(box.states().values()) == {"stopped"}
