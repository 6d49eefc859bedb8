"""What a box tells of its requests: metrics over HTTP, rows on disk, for real listeners and fake children."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from tests.support.box import Box, fake, real, serving, until

pytestmark = pytest.mark.system

LISTENERS: dict[str, dict[str, Any]] = {
    "main": {"workers": 2},
    "locked": {"apiKeys": ["sk-private-key"]},
}
SECRETS = ("sk-private-key", "a very private prompt")


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    models = {
        "chat": fake("--name chat"),
        "counted": fake("--name counted"),
        "slow": fake("--name slow --event-interval 0.2 --events 100"),
        "late": fake("--name late --load-seconds 60"),
        "broken": fake("--name broken --exit-code 3"),
    }
    with serving(models, listeners=LISTENERS, vramBudgetGB=100) as box:
        yield box


def samples(
    box: Box, listener: str = "main"
) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    headers = {"Authorization": f"Bearer {SECRETS[0]}"} if listener == "locked" else {}
    answer = requests.get(box.url("/metrics", listener), headers=headers, timeout=10)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return {
        (s.name, frozenset(s.labels.items())): s.value
        for family in text_string_to_metric_families(answer.text)
        for s in family.samples
    }


def value(box: Box, name: str, /, *, at: str = "main", **labels: str) -> float:
    return samples(box, at).get((f"qmsup_{name}", frozenset(labels.items())), 0.0)


def rows(box: Box, **where: object) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(box.folder / "state" / "state.db")) as db:
        db.row_factory = sqlite3.Row
        found = [dict(row) for row in db.execute("SELECT * FROM activity ORDER BY id")]
    return [row for row in found if all(row[name] == wanted for name, wanted in where.items())]


def row_of(box: Box, answer: requests.Response) -> dict[str, Any]:
    request = answer.headers["X-QM-Request-Id"]
    (row,) = until(lambda: rows(box, request=request), what=f"a row of {request}")
    return row


def test_a_request_is_counted_and_has_a_row(box: Box) -> None:
    answer = box.chat("chat", max_tokens=6)

    row = row_of(box, answer)
    assert (row["listener"], row["model"], row["host"], row["route"]) == (
        "main",
        "chat",
        "local",
        "",
    )
    assert (row["status"], row["outcome"], row["path"]) == (200, "finished", "/v1/chat/completions")
    assert (row["tokens_in"], row["tokens_out"]) == (1, 6)
    assert row["wait_ms"] == int(answer.headers["X-QM-Wait-Ms"])
    assert row["bytes"] > len(answer.content)
    labels = {"model": "chat", "listener": "main", "code": "200"}
    until(lambda: value(box, "requests_total", **labels) >= 1)
    assert value(box, "tokens_total", model="chat", direction="out") >= 6
    assert value(box, "queue_wait_seconds_count", model="chat") >= 1


def test_all_workers_of_a_listener_count_together(box: Box) -> None:
    for _ in range(12):  # each on a connection of its own, so by either worker
        assert box.chat("counted").status_code == 200

    labels = {"model": "counted", "listener": "main", "code": "200"}
    until(lambda: value(box, "requests_total", **labels) == 12)
    assert value(box, "requests_total", at="locked", **labels) == 12


def test_a_stream_tells_when_its_first_bytes_came(box: Box) -> None:
    row = row_of(box, box.chat("chat", stream=True))

    assert row["streaming"] == 1
    assert 0 <= row["ttft_ms"] <= row["ms"]
    until(lambda: value(box, "ttft_seconds_count", model="chat") == 1)


def test_a_client_that_left_while_it_waited_has_a_row(box: Box) -> None:
    with pytest.raises(requests.ReadTimeout):
        requests.post(
            box.url("/v1/chat/completions"), json={"model": "late", "messages": []}, timeout=1
        )

    (row,) = until(lambda: rows(box, model="late"))
    assert (row["outcome"], row["status"], row["wait_ms"], row["tokens_out"]) == (
        "abandoned",
        0,
        None,
        None,
    )
    until(lambda: value(box, "requests_total", model="late", listener="main", code="499") == 1)


def test_a_client_that_left_in_the_midst_of_a_stream_has_a_row(box: Box) -> None:
    answer = box.chat("slow", stream=True, max_tokens=100)
    next(answer.iter_content(1))
    answer.close()

    row = row_of(box, answer)
    assert (row["outcome"], row["status"]) == ("abandoned", 200)
    assert row["bytes"] > 0


def test_a_load_that_fails_is_told_by_status_and_by_the_end_of_the_program(box: Box) -> None:
    answer = box.chat("broken")

    row = row_of(box, answer)
    assert (answer.status_code, row["status"], row["outcome"]) == (502, 502, "failed")
    assert value(box, "child_exits_total", model="broken", reason="failed_to_start") == 1
    assert value(box, "model_state", model="broken", state="failed") == 1


def test_how_things_stand_is_measured(box: Box) -> None:
    box.chat("chat")

    assert value(box, "model_state", model="chat", state="ready") == 1
    assert value(box, "swaps_total", model="chat", reason="fits") >= 1
    assert value(box, "load_seconds_count", model="chat") >= 1
    assert value(box, "scheduler_epoch") == 1
    assert value(box, "footprint_bytes", model="chat", kind="estimated") == 3 * 1024**3
    assert value(box, "handle_seconds_count") >= 4


def test_neither_keys_nor_prompts_are_in_the_rows(box: Box) -> None:
    answer = requests.post(
        box.url("/v1/chat/completions", "locked"),
        json={"model": "chat", "messages": [{"role": "user", "content": SECRETS[1]}]},
        headers={"Authorization": f"Bearer {SECRETS[0]}"},
        timeout=20,
    )

    row = row_of(box, answer)
    assert (row["key"], row["listener"]) == ("1", "locked")
    assert row["fingerprint"].startswith("f-")
    for row in rows(box):
        assert not any(secret in str(row) for secret in SECRETS)


def test_unknown_models_are_no_labels(box: Box) -> None:
    for number in range(20):
        assert box.chat(f"no-such-model-{number}").status_code == 404

    assert not any("no-such-model" in str(labels) for _, labels in samples(box))
    until(lambda: value(box, "requests_total", model="", listener="main", code="404") == 20)


def test_a_models_own_metrics_are_looked_at_without_loading_it(box: Box) -> None:
    box.run("unload", "chat")
    refused = requests.get(box.url("/metrics?model=chat"), timeout=10)

    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "model_not_loaded")
    assert box.states()["chat"] == "stopped"

    box.chat("chat")
    relayed = requests.get(box.url("/metrics?model=chat"), timeout=10)
    assert relayed.headers["X-QM-Model"] == "chat"
    assert relayed.json()["error"]["message"] == "File Not Found"  # as the fake child says


def test_metrics_need_a_key_where_the_port_has_one(box: Box) -> None:
    assert requests.get(box.url("/metrics", "locked"), timeout=10).status_code == 401


def test_metrics_answer_every_method_that_others_do(box: Box) -> None:
    head = requests.head(box.url("/metrics"), timeout=10)
    options = requests.options(box.url("/metrics"), timeout=10)

    assert (head.status_code, head.content) == (200, b"")
    assert options.headers["Allow"] == "GET, HEAD, OPTIONS"
    assert requests.post(box.url("/metrics"), timeout=10).status_code == 405


ASKED: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5},
    "/v1/messages": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5},
    "/v1/responses": {"input": "hi", "max_output_tokens": 5},
    "/v1/completions": {"prompt": "hi", "max_tokens": 5},
    "/completion": {"prompt": "hi", "n_predict": 5},
}


def test_a_real_server_tells_its_tokens_on_every_api() -> None:
    with serving({"agent": real("counts")}) as box:
        for path, asked in ASKED.items():
            for streams in (False, True):
                body = {"model": "agent", "stream": streams, **asked}
                answer = requests.post(box.url(path), json=body, timeout=60)
                row = row_of(box, answer)
                assert answer.status_code == 200, answer.text
                assert row["tokens_out"] == 5, (path, streams, row)
                assert row["tokens_in"] >= 2, (path, streams, row)
