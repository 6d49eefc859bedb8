"""`/upstream/{model}/{path}`, and what is looked at without loading it."""

import re
from collections.abc import Mapping

import pytest

from qmsup.errors import SchedulerUnavailableError
from qmsup.listener.outcome import Dialect
from qmsup.listener.passthrough import loads_nothing
from qmsup.listener.relay.order import RelayOrder
from tests.support.listener_app import (
    LOCKED,
    Answer,
    StandInLink,
    app_of,
    call,
    content,
    environ_of,
    parsed,
)


def _order(
    method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> RelayOrder:
    result = call(app_of(), environ_of(method, target, body, headers))
    assert isinstance(result, RelayOrder), result
    return result


def _answer(method: str, target: str, body: bytes = b"") -> Answer:
    result = call(app_of(), environ_of(method, target, body))
    assert isinstance(result, Answer)
    return result


TARGETS = {
    "/upstream/chat/v1/models": ("chat", "/v1/models"),
    "/upstream/gpt-4o-mini/": ("chat", "/"),
    "/upstream/org/deep/model/a/b/": ("org/deep/model", "/a/b/"),
    "/upstream/org%2Fdeep%2fmodel/a": ("org/deep/model", "/a"),
    "/upstream/org/deep%2Fmodel/a?b=%20&c": ("org/deep/model", "/a?b=%20&c"),
    "/upstream/chat/%2e%2E/a%2Fb//c;d=e": ("chat", "/%2e%2E/a%2Fb//c;d=e"),
    "/upstream/%63hat/x": ("chat", "/x"),
    "/upstream/chat//": ("chat", "//"),
    "/upstream/secret/x": ("hidden", "/x"),
    "http://elsewhere/upstream/chat/x?y": ("chat", "/x?y"),
}


@pytest.mark.parametrize("target", TARGETS)
def test_the_path_behind_the_name_reaches_the_child_byte_for_byte(target: str) -> None:
    model, expected = TARGETS[target]
    environ = environ_of("GET", target)
    environ["PATH_INFO"] = environ["PATH_INFO"].removeprefix("http://elsewhere")

    order = call(app_of(), environ)

    assert isinstance(order, RelayOrder)
    assert (order.model, order.method) == (model, "GET")
    line, headers = parsed(order.head)
    assert line == f"GET {expected} HTTP/1.1"
    assert "content-length" not in headers


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "QUERY"])
def test_any_method_and_body_passes(method: str) -> None:
    order = _order(method, "/upstream/chat/x", b"\0 no JSON", {"Content-Type": "image/png"})

    assert (order.method, content(order), order.streaming) == (method, b"\0 no JSON", False)
    assert parsed(order.head)[1]["content-type"] == "image/png"
    assert parsed(order.head)[1]["content-length"] == "9"


def test_a_post_without_a_body_has_its_length() -> None:
    assert parsed(_order("POST", "/upstream/chat/x").head)[1]["content-length"] == "0"


def test_what_an_answer_says_of_tools_is_read_here_too() -> None:
    known = _order("POST", "/upstream/chat/v1/chat/completions", b"{}")
    other = _order("GET", "/upstream/chat/v1/chat/completions")

    assert (known.dialect, other.dialect) == (Dialect.CHAT, Dialect.NONE)
    named = _order("POST", "/upstream/chat/x", b"", {"X-Session-Id": "s", "X-QM-Hold-Ms": "5"})
    assert (named.conversation, named.hold) == ("s", 0.005)


def test_a_page_is_sent_to_where_its_links_lead_into_it() -> None:
    for target, location in (
        ("/upstream/chat", "/upstream/chat/"),
        ("/upstream/org%2Fdeep/model?a=b", "/upstream/org%2Fdeep/model/?a=b"),
    ):
        answer = _answer("GET", target)
        assert (answer.status, answer.headers["Location"]) == (307, location)
        assert answer.headers["X-QM-Request-Id"]
        assert answer.headers["Vary"] == "Origin"
    assert parsed(_order("POST", "/upstream/chat").head)[0] == "POST / HTTP/1.1"


def test_what_is_nobody_is_named() -> None:
    answer = _answer("GET", "/upstream/chta/x")

    assert (answer.status, answer.code) == (404, "model_not_found")
    assert "did you mean chat" in answer.error["message"]
    assert _answer("GET", "/upstream").status == 404
    assert _answer("GET", "/%75pstream/chat/x").status == 404


def test_keys_and_bounds_hold() -> None:
    locked = call(app_of(LOCKED), environ_of("GET", "/upstream/chat/x"))
    assert isinstance(locked, Answer)
    assert locked.status == 401
    large = call(
        app_of(), environ_of("PUT", "/upstream/chat/x", b"", {"Content-Length": str(10**9)})
    )
    assert isinstance(large, Answer)
    assert (large.status, large.code) == (413, "body_too_large")


def test_a_browser_may_ask_what_is_allowed() -> None:
    answer = call(app_of(), environ_of("OPTIONS", "/upstream/chat/x"))

    assert isinstance(answer, Answer)
    assert answer.status == 204
    assert "DELETE" in answer.headers["Allow"]


# ---- what never loads


def _link(state: str) -> StandInLink:
    return StandInLink(answers={"running": {"running": [{"model": "chat", "state": state}]}})


@pytest.mark.parametrize(
    "path", ["/props", "/slots/", "/v/audio/voices", "/sdapi/v1/loras", "/metrics/"]
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_ready_model_can_be_looked_at(path: str, method: str) -> None:
    order = call(app_of(link=_link("ready")), environ_of(method, f"{path}?model=gpt-4o-mini"))

    assert isinstance(order, RelayOrder)
    assert (order.model, order.method) == ("chat", method)
    assert "model=gpt-4o-mini" in parsed(order.head)[0]


@pytest.mark.parametrize("state", ["loading", "stopping"])
def test_looking_never_loads(state: str) -> None:
    for target in ("/props?model=chat", "/props?model=coder"):
        answer = call(app_of(link=_link(state)), environ_of("GET", target))

        assert isinstance(answer, Answer)
        assert (answer.status, answer.code) == (503, "model_not_loaded")
        assert "/api/models/load/" in answer.error["message"]


def test_looking_needs_a_model_a_key_and_a_scheduler() -> None:
    assert _answer("GET", "/props").code == "model_missing"
    assert _answer("GET", "/slots?model=nope").code == "model_not_found"
    locked = call(app_of(LOCKED), environ_of("GET", "/props?model=chat"))
    assert isinstance(locked, Answer)
    assert locked.status == 401
    absent = StandInLink(trouble=SchedulerUnavailableError())
    answer = call(app_of(link=absent), environ_of("GET", "/props?model=chat"))
    assert isinstance(answer, Answer)
    assert answer.code == "scheduler_unavailable"


WEBSOCKET = {
    "Connection": "keep-alive, Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Key": "k",
    "Sec-WebSocket-Version": "13",
}


def test_a_websocket_asks_the_child_for_a_tunnel() -> None:
    order = _order("GET", "/upstream/chat/ws", headers=WEBSOCKET)

    _, headers = parsed(order.head)
    assert order.upgrades
    assert (headers["connection"], headers["upgrade"]) == ("Upgrade", "websocket")
    assert headers["sec-websocket-key"] == "k"


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET", {"Upgrade": "websocket"}),
        ("GET", {"Connection": "Upgrade"}),
        ("GET", {"Connection": "Upgrade", "Upgrade": "h2c"}),
        ("GET", {"Connection": "Upgrade", "Upgrade": "websocket, h2c"}),
        ("POST", WEBSOCKET),
    ],
)
def test_nothing_else_does(method: str, headers: dict[str, str]) -> None:
    order = _order(method, "/upstream/chat/ws", headers=headers)

    _, sent = parsed(order.head)
    assert not order.upgrades
    assert sent["connection"] == "close"
    assert "upgrade" not in sent


def test_paths_may_load_nothing() -> None:
    patterns = (re.compile(r"\.(js|css)$"), re.compile("^/ws$"))

    def loads_nothing_at(path: str) -> bool:
        return loads_nothing(_order("GET", f"/upstream/chat{path}"), patterns)

    assert loads_nothing_at("/static/a.js?v=1")
    assert loads_nothing_at("/a%2Ejs")
    assert loads_nothing_at("/ws")
    assert not loads_nothing_at("/ws/x")
    assert not loads_nothing_at("/?x=a.js")
    assert not loads_nothing(_order("GET", "/upstream/chat/a.js"), ())


@pytest.mark.parametrize("target", ["/upstream/", "/upstream//"])
def test_without_a_model_the_path_is_said_how_to_name_one(target: str) -> None:
    answer = _answer("GET", target)

    assert (answer.status, answer.code) == (404, "model_not_found")
    assert "/upstream/MODEL/PATH" in answer.error["message"]
