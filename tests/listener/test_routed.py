"""Requests of routes: what a listener makes of them before anybody is asked for a host."""

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from qmsup.ids import HostName, ListenerName, ModelId, RouteName
from qmsup.listener.app import App, create
from qmsup.listener.outcome import Dialect
from qmsup.listener.relay.order import RelayOrder, Wayfaring
from qmsup.spec import HostSpec, KeySpec, PeerSpec, RouteSpec, Spec
from tests.support.listener_app import (
    AGENTS,
    CHAT,
    LOCKED,
    MAIN,
    SPEC,
    Answer,
    StandInLink,
    call,
    content,
    environ_of,
)

_BOX, _FAR = HostName("box"), HostName("far")
_ROUTES = (
    RouteSpec(name=RouteName("convo"), hosts=(_BOX,), default_model="gpt-4o-mini"),
    RouteSpec(name=RouteName("agent-*"), hosts=(_BOX,)),
)
_SPEC: Spec = replace(
    SPEC,
    hosts={_BOX: HostSpec(name=_BOX, upstream="10.0.0.3:80", api_key="sk-box")},
    peers={_FAR: PeerSpec(name=_FAR, upstream="10.0.0.2:80", models=(ModelId("big"),))},
    routes={route.name: route for route in _ROUTES},
    listeners={
        **SPEC.listeners,
        AGENTS: replace(SPEC.listeners[AGENTS], routes=(RouteName("agent-*"),)),
        LOCKED: replace(
            SPEC.listeners[LOCKED],
            api_keys=(KeySpec(key="sk-coder", models=frozenset({ModelId("coder")}), admin=False),),
        ),
    },
)


def _app(listener: ListenerName = MAIN) -> App:
    return create(_SPEC, listener, StandInLink())


def _order(
    method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> RelayOrder:
    result = call(_app(), environ_of(method, target, body, headers))
    assert isinstance(result, RelayOrder), result
    return result


def _way(order: RelayOrder) -> Wayfaring:
    assert order.way is not None
    return order.way


def _answer(app: App, method: str, target: str, body: bytes, **headers: str) -> Answer:
    result = call(app, environ_of(method, target, body, headers))
    assert isinstance(result, Answer), result
    return result


def _first(order: RelayOrder) -> str:
    return order.head.partition(b"\r\n")[0].decode()


def test_a_chat_of_a_route() -> None:
    body = json.dumps(
        {"model": "chat", "stream": True, "messages": [{"role": "user", "content": "x" * 400}]}
    )

    order = _order("POST", f"/route/convo{CHAT}?a=%2F", body.encode())

    assert _first(order) == "POST /v1/chat/completions?a=%2F HTTP/1.1"
    assert (order.model, order.streaming, order.dialect) == ("chat", True, Dialect.CHAT)
    assert order.conversation.startswith("f-")
    assert content(order) == body.encode()
    way = _way(order)
    assert (way.route, way.is_control, way.tokens) == ("convo", False, 100)
    assert set(way.remotes) == {"box", "far"}
    assert b"Authorization: Bearer sk-box\r\n" in way.remotes[_BOX].lines


def test_a_header_names_a_route_too() -> None:
    order = _order("POST", CHAT, b'{"model": "chat"}', {"X-QM-Route": "agent-7"})

    assert (_first(order), _way(order).route) == ("POST /v1/chat/completions HTTP/1.1", "agent-7")
    assert b"agent-7" not in order.head
    looked = _order("GET", "/slots?model=chat", headers={"X-QM-Route": "convo"})
    assert _way(looked).is_control


MODELS = {
    b"{}": ("chat", {"model": "chat"}),
    b'{"model": "gpt-4o-mini"}': ("chat", {"model": "chat"}),
    b'{"model": "unknown here"}': ("unknown here", {"model": "unknown here"}),
    b'{"model": "filtered", "top_k": 1, "stop": []}': (
        "filtered",
        {"model": "filtered", "stop": ["a"], "temperature": 0.5},
    ),
}


@pytest.mark.parametrize("body", MODELS)
def test_hosts_read_the_models_own_name(body: bytes) -> None:
    model, sent = MODELS[body]

    order = _order("POST", f"/route/convo{CHAT}", body)

    assert order.model == model
    assert json.loads(content(order)) == sent


CONTROL = {
    ("GET", "/route/convo/slots"): "GET /slots?model=chat HTTP/1.1",
    ("GET", "/route/convo/props?model=coder"): "GET /props?model=coder HTTP/1.1",
    ("GET", "/route/convo/metrics?a=b"): "GET /metrics?a=b HTTP/1.1",
    ("GET", "/route/convo/health"): "GET /health HTTP/1.1",
    ("POST", "/route/convo/slots/1%2F?action=save"): "POST /slots/1%2F?action=save HTTP/1.1",
    ("POST", "/route/convo/control/a/b"): "POST /control/a/b HTTP/1.1",
    ("POST", "/route/convo/tokenize"): "POST /tokenize HTTP/1.1",
    ("DELETE", "/route/convo"): "DELETE / HTTP/1.1",
}


@pytest.mark.parametrize("asked", CONTROL)
def test_what_steers_a_server_takes_no_slot(asked: tuple[str, str]) -> None:
    order = _order(*asked, b"{}" if asked[0] == "POST" else b"")

    assert _first(order) == CONTROL[asked]
    assert _way(order).is_control
    assert _way(order).is_look is (asked[0] == "GET")
    assert (_way(order).tokens, order.dialect) == (0, Dialect.NONE)


def test_a_form_names_its_model() -> None:
    body = b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\ncoder\r\n--b--\r\n'

    order = _order(
        "POST",
        "/route/convo/v1/audio/transcriptions",
        body,
        {"Content-Type": "multipart/form-data; boundary=b"},
    )

    assert (order.model, content(order)) == ("coder", body)
    assert not _way(order).is_control


@pytest.mark.parametrize("body", [b'{"model":"convo","a":1}', b'{"a":1, "model":"convo"}'])
def test_a_route_may_stand_where_a_model_s_name_does(body: bytes) -> None:
    order = _order("POST", CHAT, body)

    assert (_way(order).route, order.model) == ("convo", "chat")
    assert json.loads(content(order)) == {"model": "chat", "a": 1}


def test_in_a_form_or_a_query_as_well() -> None:
    head = b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\n'
    headers = {"Content-Type": "multipart/form-data; boundary=b"}

    form = _order("POST", "/v1/images/edits", head + b"convo\r\n--b--\r\n", headers)
    query = _order("POST", f"{CHAT}?model=convo", b"{}")

    assert content(form) == head + b"chat\r\n--b--\r\n"
    assert json.loads(content(query)) == {"model": "chat"}
    assert _way(form).route == _way(query).route == "convo"


def _listed(app: App, **headers: str) -> dict[str, dict[str, object]]:
    told = json.loads(_answer(app, "GET", "/v1/models", b"", **headers).body)["data"]
    return {model["id"]: model for model in told}


def test_routes_that_can_be_used_so_are_listed() -> None:
    listed = _listed(_app())

    assert listed["convo"]["meta"] == {"llamaswap": {"type": "route", "modelID": "chat"}}
    assert "agent-*" not in listed
    one = json.loads(_answer(_app(), "GET", "/v1/models/convo", b"").body)
    assert one == listed["convo"]
    assert "convo" not in _listed(_app(AGENTS))
    locked = _listed(_app(LOCKED), Authorization="Bearer sk-coder")
    assert set(locked) == {"coder"}


def test_who_may_not_use_its_model_is_told_that_there_is_none() -> None:
    headers = {"Authorization": "Bearer sk-coder"}

    answer = _answer(_app(LOCKED), "POST", CHAT, b'{"model": "convo"}', **headers)

    assert (answer.status, answer.code) == (404, "model_not_found")


def test_a_model_of_the_name_goes_before_a_route() -> None:
    chat = RouteSpec(name=RouteName("chat"), hosts=(_BOX,), default_model="elsewhere")
    far = RouteSpec(name=RouteName("far"), hosts=(_BOX,), default_model="elsewhere")
    spec = replace(_SPEC, routes={chat.name: chat, far.name: far})
    app = create(spec, MAIN, StandInLink())

    assert "elsewhere" not in str(_listed(app)["chat"])
    record = _listed(app)["far"]
    assert record["meta"] == {"llamaswap": {"type": "route", "modelID": "elsewhere"}}
    order = call(app, environ_of("POST", CHAT, b'{"model": "chat"}'))
    assert isinstance(order, RelayOrder)
    assert order.way is None
    elsewhere = call(app, environ_of("POST", CHAT, b'{"model": "far"}'))
    assert isinstance(elsewhere, RelayOrder)
    assert elsewhere.model == "elsewhere"


def test_a_name_near_a_route_s_is_told_it() -> None:
    answer = _answer(_app(), "POST", CHAT, b'{"model": "convoy"}')

    assert "convo" in answer.error["message"]


REFUSED = {
    ("no such route", "/route/nowhere/x"): (404, "route_not_found"),
    ("no name of a route", "/route/agent-%2F/x"): (404, "route_not_found"),
    ("spelled with escapes", "/%72oute/convo/x"): (404, "not_found"),
    ("no model", f"/route/agent-1{CHAT}"): (400, "model_missing"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: tuple[str, str]) -> None:
    answer = _answer(_app(), "POST", case[1], b"{}")

    assert (answer.status, answer.code) == REFUSED[case]


def test_broken_json_is_refused() -> None:
    answer = _answer(_app(), "POST", f"/route/convo{CHAT}", b'{"model": "chat"')

    assert (answer.status, answer.code) == (400, "bad_request")


def test_a_listener_serves_the_routes_that_it_names() -> None:
    body = b'{"model": "coder"}'

    assert isinstance(
        call(_app(AGENTS), environ_of("POST", f"/route/agent-1{CHAT}", body)), RelayOrder
    )
    refused = _answer(_app(AGENTS), "POST", f"/route/convo{CHAT}", body)
    assert refused.code == "route_not_found"
    assert refused.error["message"] == "this port has no route 'convo'; it has agent-*"


def test_a_key_opens_a_route_for_its_models_only() -> None:
    target, key = f"/route/convo{CHAT}", {"Authorization": "Bearer sk-coder"}
    locked = _app(LOCKED)

    assert isinstance(
        call(locked, environ_of("POST", target, b'{"model": "coder"}', key)), RelayOrder
    )
    assert _answer(locked, "POST", target, b"{}", **key).code == "model_not_allowed"
    assert _answer(locked, "POST", target, b"{}").code == "invalid_api_key"


def test_a_browser_may_ask_before() -> None:
    answer = _answer(_app(), "OPTIONS", f"/route/convo{CHAT}", b"", Origin="http://page")

    assert answer.status == 204
    assert "POST" in answer.headers["Allow"]


def test_a_job_is_the_scheduler_processs_should_it_come_to_this_box() -> None:
    order = _order("POST", "/route/convo/sdcpp/v1/img_gen", b"{}")

    assert order.via.endswith("jobs.sock")
    assert not _way(order).is_control
