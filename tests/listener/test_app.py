"""The app as a client meets it: orders for models, ordinary answers for the rest, envelopes for what is wrong."""

import json
import logging
from typing import TYPE_CHECKING, Any, cast

import pytest
from typing_extensions import override
from werkzeug.test import Client, TestResponse

from qmsup import __version__
from qmsup.errors import Code, Refusal, RequestError, SchedulerUnavailableError
from qmsup.ids import ListenerName
from qmsup.listener.relay.order import RelayOrder
from qmsup.listener.routes import RELAYED
from tests.support.listener_app import (
    AGENTS,
    CHAT,
    LOCKED,
    MAIN,
    StandInLink,
    app_of,
    call,
    environ_of,
    ordered,
    refused,
)

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

BODY = b'{"model":"chat"}'
GET_PATHS = ["/", "/health", "/v1/health", "/version", "/running", "/v1/models", "/models"]


class _Here(Client):
    """A client on this machine."""

    @override
    def open(self, *args: Any, **kwargs: Any) -> TestResponse:
        return super().open(*args, **{**kwargs, "environ_overrides": {"REMOTE_ADDR": "127.0.0.1"}})


def _client(link: StandInLink | None = None, listener: ListenerName = MAIN) -> Client:
    app = app_of(listener, link)
    return _Here(cast("WSGIApplication", app))  # ordinary answers only: it is a plain WSGI app then


def _error(response: TestResponse) -> dict[str, str]:
    error: dict[str, str] = response.get_json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return error


@pytest.mark.parametrize("path", RELAYED)
def test_every_relayed_path_gives_an_order(path: str) -> None:
    order = ordered(b'{"model":"gpt-4o-mini","stream":true}', target=path)

    assert order.model == "chat"
    assert order.method == "POST"
    assert order.request.startswith("q-")
    assert order.streaming is RELAYED[path].generates
    assert order.dialect is RELAYED[path].dialect


def test_orders_are_told_apart() -> None:
    assert ordered(BODY).request != ordered(BODY).request


def test_the_list_shows_this_ports_catalogue_in_openais_shape() -> None:
    for path in ("/v1/models", "/models", "/v1/models/"):
        listed = _client().get(path).get_json()
        assert listed["object"] == "list"
        assert [m["id"] for m in listed["data"]] == ["chat", "coder", "org/deep/model", "renamed"]
        assert (
            listed["data"][0].items()
            >= {
                "object": "model",
                "owned_by": "qmsup",
                "name": "Chat",
                "description": "for talking",
            }.items()
        )
        assert isinstance(listed["data"][0]["created"], int)

    agents = _client(listener=AGENTS).get("/v1/models").get_json()
    assert [m["id"] for m in agents["data"]] == ["coder"]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/v1/models/chat", "chat"),
        ("/v1/models/gpt-4o-mini", "chat"),
        ("/models/org/deep/model", "org/deep/model"),
        ("/v1/models/org%2Fdeep%2Fmodel", "org/deep/model"),
        ("/v1/models/hidden", "hidden"),
    ],
)
def test_one_model_is_described(path: str, found: str) -> None:
    assert _client().get(path).get_json()["id"] == found


def test_an_unknown_model_is_told_what_reads_alike_on_this_port() -> None:
    error = _error(_client().get("/v1/models/Codr"))
    assert error["code"] == "model_not_found"
    assert error["param"] == "model"
    assert "did you mean coder" in error["message"]

    answer = refused(b'{"model":"chad"}', app=app_of(AGENTS))
    assert (answer.status, answer.code) == (404, "model_not_found")
    assert "'chat'" not in answer.error["message"]
    assert "/v1/models" in answer.error["message"]


def test_health_is_the_schedulers() -> None:
    link = StandInLink()
    healthy = _client(link).get("/health")
    assert (healthy.status_code, healthy.get_json()) == (200, {"status": "ok"})

    link.trouble = SchedulerUnavailableError("it does not answer")
    ill = _client(link).get("/health")
    assert ill.status_code == 503
    assert _error(ill)["code"] == "scheduler_unavailable"
    assert ill.headers["Retry-After"] == "1"
    assert link.asked == [("ping", {}), ("ping", {})]


def test_running_shows_this_ports_models_only() -> None:
    entries = [{"model": "chat", "state": "ready"}, {"model": "coder"}, {"model": ["?"]}, "odd"]
    link = StandInLink(answers={"running": {"running": entries}})

    assert _client(link).get("/running").get_json() == {"running": entries[:2]}
    assert _client(link, AGENTS).get("/running").get_json() == {"running": [{"model": "coder"}]}


def test_unloading_reaches_this_ports_models_only() -> None:
    link = StandInLink()

    assert _client(link, AGENTS).post("/api/models/unload").get_json() == {"unloaded": ["coder"]}
    assert _client(link).post("/api/models/unload/gpt-4o-mini").status_code == 200
    assert _client(link).post("/api/models/unload/org/deep/model").status_code == 200
    assert _client(link, AGENTS).post("/api/models/unload/chat").status_code == 404

    assert link.asked == [
        ("unload", {"models": ["coder"]}),
        ("unload", {"models": ["chat"]}),
        ("unload", {"models": ["org/deep/model"]}),
    ]


def test_loading_asks_the_scheduler_and_passes_its_refusal_on() -> None:
    link = StandInLink(answers={"load": {"model": "chat", "state": "ready"}})
    assert _client(link).post("/api/models/load/chat").get_json()["state"] == "ready"
    assert link.asked == [("load", {"model": "chat"})]

    link.trouble = RequestError(Refusal(code=Code.INSUFFICIENT_VRAM, message="needs 9, has 4"))
    refusal = _client(link).post("/api/models/load/chat")
    assert refusal.status_code == 507
    assert _error(refusal)["message"] == "needs 9, has 4"


def test_greeting_and_version() -> None:
    assert _client().get("/").get_json()["name"] == "qmsup"
    assert _client().get("/version").get_json() == {"version": __version__}


@pytest.mark.parametrize("path", GET_PATHS)
def test_head_answers_as_get_does_without_a_body(path: str) -> None:
    get, head = _client().get(path), _client().head(path)

    assert head.status_code == get.status_code == 200
    assert head.headers["Content-Length"] == str(len(get.data))
    assert head.data == b""


@pytest.mark.parametrize("path", [*GET_PATHS, CHAT, "/api/models/unload", "/nowhere", "*"])
def test_preflights_are_answered_everywhere_and_without_a_key(path: str) -> None:
    environ = environ_of(
        "OPTIONS",
        path,
        headers={
            "Origin": "http://ui",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,x-mine",
        },
    )

    answer = call(app_of(LOCKED), environ)

    assert not isinstance(answer, RelayOrder)
    assert answer.status == 204
    assert answer.headers["Access-Control-Allow-Origin"] == "http://ui"
    assert "POST" in answer.headers["Access-Control-Allow-Methods"]
    assert answer.headers["Access-Control-Allow-Headers"] == "authorization,x-mine"
    assert "OPTIONS" in answer.headers["Allow"]


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/health"), ("GET", "/nowhere"), ("DELETE", "/v1/models"), ("POST", CHAT)],
)
def test_every_answer_can_be_read_by_a_browser_and_has_an_id(method: str, path: str) -> None:
    answer = call(app_of(), environ_of(method, path, headers={"Origin": "http://ui"}))

    assert not isinstance(answer, RelayOrder)
    assert answer.headers["Access-Control-Allow-Origin"] == "http://ui"
    assert answer.headers["Vary"] == "Origin"
    assert "X-QM-Model" in answer.headers["Access-Control-Expose-Headers"]
    assert answer.headers["X-QM-Request-Id"].startswith("q-")
    assert answer.headers["Content-Length"] == str(len(answer.body))


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", CHAT, "OPTIONS, POST"),
        ("HEAD", CHAT, "OPTIONS, POST"),
        ("PUT", CHAT + "/", "OPTIONS, POST"),
        ("GET", "/api/models/unload", "OPTIONS, POST"),
        ("POST", "/v1/models", "GET, HEAD, OPTIONS"),
        ("BREW", "/health", "GET, HEAD, OPTIONS"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(method: str, path: str, allowed: str) -> None:
    response = _client().open(path, method=method)

    assert response.status_code == 405
    assert response.headers["Allow"] == allowed
    if method != "HEAD":
        assert _error(response)["code"] == "method_not_allowed"


@pytest.mark.parametrize(
    "path",
    ["/nowhere", "/v1", "/v1/chat", "/%FF%00", "//", "/v1/models//", "/v1/chat/completions/x"],
)
def test_an_unknown_path_is_not_found(path: str) -> None:
    for method in ("GET", "POST"):
        environ = environ_of(method, path)
        answer = call(app_of(), environ)
        assert not isinstance(answer, RelayOrder)
        if answer.status != 200:
            assert answer.code in {"not_found", "method_not_allowed"}


@pytest.mark.parametrize("path", ["//v1/chat/completions", "/v1/completions//", "//completion/"])
def test_a_relayed_path_with_slashes_too_many_is_not_found(path: str) -> None:
    answer = refused(BODY, target=path)

    assert (answer.status, answer.code) == (404, "not_found")
    assert path in answer.error["message"]


def test_a_browsers_icon_is_nothing_quickly() -> None:
    response = _client().get("/favicon.ico")

    assert (response.status_code, response.data) == (204, b"")


def test_our_bug_is_an_envelope_for_the_client_and_a_traceback_for_us(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class _Bug(StandInLink):
        def ask(self, verb: str, args: object, timeout: float) -> object:  # type: ignore[explicit-override]
            raise ZeroDivisionError("private detail")

    with caplog.at_level(logging.ERROR, "qmsup"):
        response = _client(_Bug()).get("/running")

    assert response.status_code == 500
    assert _error(response)["code"] == "internal_error"
    assert "private" not in response.text
    assert any(r.exc_info and r.exc_info[0] is ZeroDivisionError for r in caplog.records)


def test_nothing_of_a_request_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        refused(b'{"model":"chat","prompt":"sweet nothings"')
        refused(BODY, headers={"Authorization": "Bearer sweet"}, app=app_of(LOCKED))

    assert "sweet" not in json.dumps([vars(r) for r in caplog.records], default=str)
