import json
from typing import Any

from qmsup.ids import ModelId
from qmsup.listener import event_stream
from qmsup.spec import ModelSpec

CHAT, OTHER = ModelId("chat"), ModelId("other")
MODELS = {CHAT: ModelSpec(id=CHAT, argv=("x",), name="Chat", aliases=("gpt",), unlisted=True)}
ROW = {
    "request": "q-1",
    "model": "chat",
    "time": 1_700_000_000.25,
    "ms": 1500,
    "ttft_ms": 500,
    "streaming": True,
    "status": 200,
    "path": "/v1/chat/completions",
    "tokens_in": 7,
    "tokens_out": 40,
    "key": "1",
    "fingerprint": "f-1",
}


def told(event: bytes, kind: str) -> Any:
    """The data of one event."""
    head, data, *rest = event.split(b"\n")
    assert (head, rest) == (b"event:message", [b"", b""])
    envelope = json.loads(data.removeprefix(b"data:"))
    assert envelope["type"] == kind
    assert isinstance(envelope["data"], str)
    return json.loads(envelope["data"])


def test_models_are_told_with_the_states_that_clients_know() -> None:
    for ours, theirs in (("ready", "ready"), ("failed", "stopped"), ("starting", "starting")):
        (model,) = told(event_stream.model_status(MODELS, {"chat": ours}), "modelStatus")
        assert model["state"] == theirs
    (model,) = told(event_stream.model_status(MODELS, {"other": "ready"}), "modelStatus")
    assert (model["id"], model["state"], model["unlisted"]) == ("chat", "stopped", True)
    assert model["aliases"] == ["gpt"]


def test_only_the_ports_requests_are_counted() -> None:
    counts = {"chat": 2, "other": 5}

    assert told(event_stream.in_flight(MODELS, counts), "inflight") == {"total": 2}


def test_a_request_that_is_over_is_told_in_the_words_of_clients() -> None:
    (entry,) = told(event_stream.requests_over(MODELS, [ROW]), "metrics")

    assert entry["timestamp"] == "2023-11-14T22:13:20.250Z"
    assert (entry["resp_status_code"], entry["duration_ms"]) == (200, 1500)
    assert entry["tokens"]["output_tokens"] == entry["output_tokens"] == 40
    assert entry["tokens"]["tokens_per_second"] == 40.0
    assert "f-1" not in json.dumps(entry)
    assert isinstance(entry["id"], int)


def test_what_an_answer_did_not_tell_is_zero_or_unknown() -> None:
    row = {**ROW, "tokens_in": None, "tokens_out": None, "ttft_ms": None}

    (entry,) = told(event_stream.requests_over(MODELS, [row]), "metrics")

    assert (entry["input_tokens"], entry["tokens_per_second"]) == (0, -1)


def test_requests_of_other_models_are_not_told() -> None:
    assert event_stream.requests_over(MODELS, [{**ROW, "model": "other"}]) == b""


def test_lines_are_told_with_whose_they_are_and_not_without_end() -> None:
    said = told(event_stream.models_wrote(CHAT, [b"hello \xff", b"x" * 9000]), "logData")

    assert said["source"] == "upstream"
    assert said["data"].startswith("[chat] hello \ufffd\n[chat] xxx")
    assert len(said["data"]) < 2100


def test_decisions_are_told_if_they_concern_this_port_or_all() -> None:
    body = {"decision": "swap.started", "model": "chat", "because": "fits", "request": None}

    said = told(event_stream.decided(MODELS, 1.0, body), "logData")

    assert said["source"] == "proxy"
    assert said["data"].endswith(" swap.started model=chat because=fits\n")
    assert event_stream.decided(MODELS, 1.0, {**body, "model": "other"}) == b""
    assert event_stream.decided(MODELS, 1.0, {"decision": "box.draining"})
