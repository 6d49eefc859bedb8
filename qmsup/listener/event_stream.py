"""The events of `/api/events` as llama-swap's clients know them: an envelope whose data is JSON once more, as text."""

import hashlib
import json
import time
from collections.abc import Iterable, Mapping

from qmsup.ids import ModelId
from qmsup.spec import ModelSpec

Models = Mapping[ModelId, ModelSpec]
"""What a client is told about: the catalogue of its port."""

Told = Mapping[str, object]
"""A body of the feed, or of an answer of the scheduler's."""

KEEP_ALIVE = b":\n\n"
_STATES = {"failed": "stopped"}
"""Theirs for ours, where they differ."""
_UNKNOWN = -1
_LONGEST_LINE = 2000
"""Bytes of a line of a log: a program may write one that never ends."""


def model_status(models: Models, states: Mapping[str, str]) -> bytes:
    """Every model with its state; those that are not named are stopped."""
    listed = [
        {
            "id": model.id,
            "name": model.name,
            "description": model.description,
            "state": _STATES.get(state := states.get(model.id, "stopped"), state),
            "unlisted": model.unlisted,
            "peerID": "",
            "aliases": list(model.aliases),
        }
        for model in models.values()
    ]
    return _event("modelStatus", listed)


def in_flight(models: Models, counts: Mapping[str, int]) -> bytes:
    """How many requests are under way."""
    return _event("inflight", {"total": sum(counts.get(model, 0) for model in models)})


def requests_over(models: Models, rows: Iterable[Told]) -> bytes:
    """What became of requests; nothing, if none was for these models."""
    shown = [_entry(row) for row in rows if row.get("model") in models]
    return _event("metrics", shown) if shown else b""


def models_wrote(model: ModelId, lines: Iterable[bytes]) -> bytes:
    """What a model's program wrote."""
    text = "".join(
        f"[{model}] {line[:_LONGEST_LINE].decode('utf-8', 'replace')}\n" for line in lines
    )
    return _event("logData", {"source": "upstream", "data": text})


def decided(models: Models, at: float, body: Told) -> bytes:
    """A decision of the scheduler's; nothing, if it is about another port's model."""
    model = body.get("model")
    if model is not None and model not in models:
        return b""
    clock = time.strftime("%H:%M:%S", time.localtime(at))
    said = "".join(
        f" {name}={body[name]}" for name in ("model", "request", "because") if body.get(name)
    )
    text = f"{clock} {body.get('decision', '')}{said}\n"
    return _event("logData", {"source": "proxy", "data": text})


def _event(kind: str, data: object) -> bytes:
    envelope = json.dumps({"type": kind, "data": json.dumps(data)})
    return b"event:message\ndata:" + envelope.encode() + b"\n\n"


def _entry(row: Told) -> dict[str, object]:
    tokens = {
        "cache_tokens": _UNKNOWN,
        "input_tokens": row.get("tokens_in") or 0,
        "output_tokens": row.get("tokens_out") or 0,
        "prompt_per_second": _UNKNOWN,
        "tokens_per_second": _pace(row),
    }
    return {
        "id": _number(str(row.get("request"))),
        "timestamp": _timestamp(row.get("time")),
        "model": row.get("model"),
        "req_path": row.get("path"),
        "resp_content_type": "text/event-stream" if row.get("streaming") else "application/json",
        "resp_status_code": row.get("status"),
        "tokens": tokens,
        "duration_ms": row.get("ms"),
        "has_capture": False,
        **tokens,  # where they were before they had a place of their own
    }


def _pace(row: Told) -> float:
    out, ms, first = row.get("tokens_out"), row.get("ms"), row.get("ttft_ms")
    if not (isinstance(out, int) and isinstance(ms, int) and isinstance(first, int)):
        return _UNKNOWN
    return round(out / (ms - first) * 1000, 2) if row.get("streaming") and ms > first else _UNKNOWN


def _number(request: str) -> int:
    """A number for a request, the same whenever it is told of; JavaScript can hold it."""
    return int.from_bytes(hashlib.blake2b(request.encode(), digest_size=6).digest())


def _timestamp(at: object) -> str:
    seconds = at if isinstance(at, float) else 0.0
    return (
        time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        + f".{int(seconds % 1 * 1000):03d}Z"
    )
