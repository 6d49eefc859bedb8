"""Every path, method and header of the HTTP surface, on ports with catalogues and keys of their own."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import requests

from tests.support.box import Box, fake, serving, until

pytestmark = pytest.mark.system

ADMIN = {"Authorization": "Bearer sk-admin"}
GUEST = {"X-Api-Key": "sk-guest"}
DIGEST = "sha256:" + hashlib.sha256(b"sk-guest").hexdigest()
ORIGIN = "https://app.example"
WITHIN = 30


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    models = {
        "chat": fake("--name chat", aliases=["gpt-4o-mini"]),
        "org/code:1": fake("--name code"),
        "broken": fake("--name broken --exit-code 3"),
        "doomed": fake("--name doomed --exit-code 3"),
        "unsized": fake("--name unsized", estVramGB=0),
        "gone": fake("--name gone"),
    }
    listeners: dict[str, dict[str, Any]] = {
        "main": {},
        "agents": {"groups": ["coding"]},
        "locked": {
            "apiKeys": ["sk-admin", {"key": DIGEST, "name": "guest", "models": ["gpt-4o-mini"]}]
        },
    }
    groups = {"coding": {"members": ["org/code:1"]}}
    # Room for one model: what one port loads, another's gives way to.
    with serving(models, listeners=listeners, groups=groups, vramBudgetGB=4, maxBodyMB=0.01) as box:
        yield box


def ask(
    box: Box,
    method: str,
    path: str,
    *,
    listener: str = "main",
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> requests.Response:
    url = box.url(path, listener)
    return requests.request(
        method, url, headers=headers, timeout=WITHIN, allow_redirects=False, **more
    )


def assert_error(answer: requests.Response, status: int, code: str) -> None:
    assert (answer.status_code, answer.headers.get("Content-Type")) == (status, "application/json")
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == code, error
    assert error["message"]
    assert answer.headers["X-QM-Request-Id"]


RELAYED = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/embeddings",
    "/v1/rerank",
    "/v1/reranking",
    "/rerank",
    "/reranking",
    "/infill",
    "/completion",
    "/tokenize",
    "/detokenize",
    "/apply-template",
    "/v1/audio/speech",
    "/v1/audio/transcriptions",
    "/v1/audio/voices",
    "/v1/images/generations",
    "/v1/images/edits",
    "/sdapi/v1/txt2img",
    "/sdapi/v1/img2img",
    "/v/chat/completions",
    "/v/completions",
    "/v/responses",
    "/v/messages",
    "/v/messages/count_tokens",
    "/v/embeddings",
    "/v/rerank",
    "/v/reranking",
    "/v/audio/speech",
    "/v/audio/transcriptions",
    "/v/audio/voices",
    "/v/images/generations",
    "/v/images/edits",
    "/chat/completions",
    "/completions",
    "/responses",
    "/embeddings",
    "/v1/chat/completions/",
]
JOBS = ["/sdcpp/v1/img_gen", "/sdcpp/v1/vid_gen"]
LOOKED_AT = ["/props", "/slots", "/sdapi/v1/loras", "/v1/audio/voices"]
PAGES = [
    "/",
    "/health",
    "/v1/health",
    "/version",
    "/running",
    "/v1/models",
    "/models",
    "/v/models",
    "/v1/models/chat",
    "/v1/models/org/code:1",
    "/v1/models/org%2Fcode:1",
    "/v1/models/gpt-4o-mini",
    "/metrics",
    "/logs",
    "/logs/stream",
    "/logs/stream/chat",
    "/api/events",
    "/api/queue",
    "/api/leases",
    "/api/explain/chat",
    "/api/explain/org/code:1",
    "/unload",
]
ACTIONS = [
    "/api/models/load/chat",
    "/api/models/unload",
    "/api/models/unload/chat",
    "/api/leases",
    "/api/reload",
    "/sdcpp/v1/jobs/x/cancel",
]


@pytest.mark.parametrize("path", RELAYED)
def test_a_path_of_models_reaches_the_one_that_is_named(box: Box, path: str) -> None:
    answer = ask(box, "POST", path, json={"model": "gpt-4o-mini", "max_tokens": 1})

    assert answer.status_code in (200, 404), answer.text
    if answer.status_code == 404:
        assert answer.json()["error"]["message"] == "File Not Found"  # the child's own word
    assert answer.headers["X-QM-Model"] == "chat"
    assert answer.headers["X-QM-Model-Loaded"] in ("0", "1")
    assert int(answer.headers["X-QM-Wait-Ms"]) >= 0
    assert answer.headers["X-QM-Host"] == "local"
    assert answer.headers["X-QM-Request-Id"]


@pytest.mark.parametrize("path", RELAYED + JOBS)
def test_it_says_what_is_wrong_with_the_model(box: Box, path: str) -> None:
    assert_error(ask(box, "POST", path, json={}), 400, "model_missing")
    assert_error(ask(box, "POST", path, json={"model": "chatt"}), 404, "model_not_found")
    assert_error(ask(box, "POST", path, data=b'{"model"'), 400, "bad_request")
    assert_error(ask(box, "PUT", path), 405, "method_not_allowed")


@pytest.mark.parametrize("path", dict.fromkeys(RELAYED + JOBS + LOOKED_AT + PAGES + ACTIONS))
def test_head_and_options_answer_everywhere(box: Box, path: str) -> None:
    looked = ask(box, "HEAD", path)
    asked = {"Origin": ORIGIN, "Access-Control-Request-Headers": "x-stainless-os, authorization"}
    options = ask(box, "OPTIONS", path, headers=asked)

    assert looked.content == b""
    assert looked.status_code < 500
    assert (looked.status_code == 405) is (path not in [*LOOKED_AT, *PAGES, "/v/audio/voices"])
    assert options.status_code == 204
    assert options.headers["Access-Control-Allow-Origin"] == ORIGIN
    assert options.headers["Access-Control-Allow-Headers"] == "x-stainless-os, authorization"
    assert "OPTIONS" in options.headers["Allow"]


@pytest.mark.parametrize("path", PAGES)
def test_a_page_may_be_read_by_a_browser_and_does_nothing_in_it(box: Box, path: str) -> None:
    headers = {"Origin": ORIGIN} if path != "/unload" else {}
    with ask(box, "GET", path, headers=headers, stream=True) as answer:
        assert answer.status_code == 200
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["X-QM-Request-Id"]
        if headers:
            assert answer.headers["Access-Control-Allow-Origin"] == ORIGIN


@pytest.mark.parametrize("path", LOOKED_AT)
def test_a_look_loads_nothing(box: Box, path: str) -> None:
    assert_error(ask(box, "GET", f"{path}?model=gone"), 503, "model_not_loaded")
    assert_error(ask(box, "GET", path), 400, "model_missing")
    assert state(box, "gone") == "stopped"


def state(box: Box, model: str, listener: str = "main") -> str:
    running = ask(box, "GET", "/running", listener=listener).json()["running"]
    return next((str(m["state"]) for m in running if m["model"] == model), "stopped")


def test_a_load_is_told_of_and_what_is_ready_needs_none(box: Box) -> None:
    assert ask(box, "POST", "/api/models/unload").status_code == 200
    body = {"model": "chat", "messages": []}

    answers = [ask(box, "POST", "/v1/chat/completions", json=body) for _ in range(2)]

    assert [a.headers["X-QM-Model-Loaded"] for a in answers] == ["1", "0"]
    looked = ask(box, "GET", "/props?model=chat")
    assert looked.json() == {"total_slots": 4}
    assert looked.headers["X-QM-Model"] == "chat"


def test_loading_on_one_port_evicts_on_another(box: Box) -> None:
    assert ask(box, "POST", "/api/models/load/chat").json()["model"] == "chat"
    assert state(box, "chat") == "ready"

    assert ask(box, "POST", "/api/models/load/org/code:1", listener="agents").status_code == 200

    assert state(box, "org/code:1", "agents") == "ready"
    until(lambda: state(box, "chat") == "stopped", what="chat is evicted")
    shown = ask(box, "GET", "/running", listener="agents").json()["running"]
    assert {m["model"] for m in shown} <= {"org/code:1"}
    assert ask(box, "POST", "/api/models/unload/org%2Fcode:1").status_code == 200
    until(lambda: state(box, "org/code:1") == "stopped", what="it is unloaded")


def test_a_port_has_its_own_catalogue(box: Box) -> None:
    listed = ask(box, "GET", "/v1/models", listener="agents").json()["data"]

    assert [m["id"] for m in listed] == ["org/code:1"]
    for method, path in (
        ("GET", "/v1/models/chat"),
        ("POST", "/api/models/load/chat"),
        ("POST", "/api/models/unload/chat"),
        ("GET", "/api/explain/chat"),
        ("GET", "/upstream/chat/x"),
        ("GET", "/logs/stream/chat"),
        ("GET", "/props?model=chat"),
    ):
        assert_error(ask(box, method, path, listener="agents"), 404, "model_not_found")


CLOSED = [("GET", p) for p in PAGES if "health" not in p] + [("POST", p) for p in ACTIONS]


@pytest.mark.parametrize(("method", "path"), CLOSED)
def test_a_port_with_keys_wants_one(box: Box, method: str, path: str) -> None:
    answer = ask(box, method, path, listener="locked", headers={"Origin": ORIGIN})

    assert_error(answer, 401, "invalid_api_key")
    assert answer.headers["Access-Control-Allow-Origin"] == ORIGIN
    assert ask(box, "OPTIONS", path, listener="locked").status_code == 204


def test_a_guest_is_shown_and_given_its_own_models_only(box: Box) -> None:
    def guest(method: str, path: str, **more: Any) -> requests.Response:
        return ask(box, method, path, listener="locked", headers=GUEST, **more)

    assert [m["id"] for m in guest("GET", "/v1/models").json()["data"]] == ["chat"]
    assert guest("POST", "/v1/completions", json={"model": "chat"}).status_code == 200
    refused = guest("POST", "/v1/completions", json={"model": "gone"})
    assert_error(refused, 403, "model_not_allowed")
    assert_error(guest("GET", "/upstream/org/code:1/x"), 403, "model_not_allowed")
    assert_error(guest("POST", "/api/models/load/chat"), 401, "invalid_api_key")
    assert_error(guest("POST", "/api/reload"), 401, "invalid_api_key")
    assert ask(box, "POST", "/api/reload", listener="locked", headers=ADMIN).status_code == 200


def test_a_key_goes_no_further(box: Box) -> None:
    for headers in (GUEST, {"Authorization": "Bearer sk-guest"}):
        answer = ask(box, "GET", "/upstream/chat/echo", listener="locked", headers=headers)
        assert answer.status_code == 200
        assert "sk-" not in answer.text


ERRORS: dict[str, tuple[int, str, str, str, dict[str, Any]]] = {
    "no such path": (404, "not_found", "GET", "/nowhere", {}),
    "no such job": (404, "job_not_found", "GET", "/sdcpp/v1/jobs/x", {}),
    "two models": (
        400,
        "bad_request",
        "POST",
        "/v1/completions",
        {"data": b'{"model":"a","model":"b"}'},
    ),
    "too large": (413, "body_too_large", "POST", "/v1/completions", {"data": b" " * 20_000}),
    "encoding": (
        415,
        "unsupported_encoding",
        "POST",
        "/v1/completions",
        {"data": b"x", "headers": {"Content-Encoding": "br"}},
    ),
    "ends": (502, "model_load_failed", "POST", "/v1/completions", {"json": {"model": "doomed"}}),
}


@pytest.mark.parametrize("case", ERRORS)
def test_an_error_has_its_status_code_and_envelope(box: Box, case: str) -> None:
    status, code, method, path, more = ERRORS[case]

    assert_error(ask(box, method, path, **more), status, code)


def test_a_failed_load_names_the_exit_code_and_a_hasty_retry_is_told_when(box: Box) -> None:
    body = {"model": "broken"}
    answers = [ask(box, "POST", "/v1/completions", json=body) for _ in range(2)]

    assert all(a.status_code in (502, 503) for a in answers)
    assert "3" in answers[0].json()["error"]["message"]
    if answers[1].status_code == 503:
        assert_error(answers[1], 503, "model_unavailable")
    assert int(answers[1].headers["Retry-After"]) >= 1


def test_a_drained_box_says_so_and_a_pinned_model_stays(box: Box) -> None:
    assert box.run("load", "chat").returncode == 0
    assert box.run("pin", "chat").returncode == 0
    answer = ask(box, "POST", "/v1/completions", json={"model": "unsized"})
    assert_error(answer, 409, "blocked_by_pin")
    assert box.run("unpin", "chat").returncode == 0

    assert box.run("drain").returncode == 0
    answer = ask(box, "POST", "/v1/completions", json={"model": "chat"})
    assert_error(answer, 503, "draining")
    assert int(answer.headers["Retry-After"]) >= 1
    assert box.run("undrain").returncode == 0
