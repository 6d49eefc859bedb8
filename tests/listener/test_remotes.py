"""The models of peers, on a listener."""

import json
from dataclasses import replace

import pytest

from qmsup.ids import HostName, ListenerName, ModelId
from qmsup.listener.app import App, create
from qmsup.listener.relay.order import RelayOrder
from qmsup.listener.remotes import remotes_of
from qmsup.spec import FilterSpec, HostSpec, ListenerSpec, PeerSpec, Spec
from qmsup.units import Seconds
from tests.support.listener_app import (
    AGENTS,
    CHAT,
    MAIN,
    SPEC,
    Answer,
    StandInLink,
    call,
    content,
    environ_of,
)

_FAR = PeerSpec(
    name=HostName("far"),
    upstream="10.0.0.2:80",
    path="/api",
    api_key="sk-peer",
    models=(ModelId("big"), ModelId("org/huge"), ModelId("chat"), ModelId("hidden")),
    filters=FilterSpec(strip=("top_k",), put={"n": "1"}),
    connect_timeout=Seconds(3.0),
    answer_timeout=Seconds(60.0),
)
_SPEC: Spec = replace(SPEC, peers={_FAR.name: _FAR})


def _app(listener: ListenerName = MAIN) -> App:
    return create(_SPEC, listener, StandInLink())


def _order(method: str, target: str, body: bytes = b"") -> RelayOrder:
    headers = {"Authorization": "Bearer sk-client", "X-Api-Key": "sk-client"}
    result = call(_app(), environ_of(method, target, body, headers))
    assert isinstance(result, RelayOrder), result
    return result


def test_a_model_that_a_peer_alone_has_goes_there_as_its_filters_say() -> None:
    order = _order("POST", CHAT, b'{"model": "big", "top_k": 3, "messages": []}')

    assert order.peer is not None
    assert (order.peer.name, order.peer.upstream) == ("far", "10.0.0.2:80")
    assert (order.peer.connect_within, order.peer.answer_within) == (3.0, 60.0)
    assert json.loads(content(order)) == {"model": "big", "messages": [], "n": 1}


def test_the_peers_key_is_sent_and_the_clients_is_not() -> None:
    order = _order("POST", CHAT, b'{"model": "big"}')

    assert order.peer is not None
    sent = order.peer.addressed(order.head)
    assert sent.startswith(b"POST /api/v1/chat/completions HTTP/1.1\r\n")
    assert sent.count(b"sk-peer") == 2
    assert b"sk-client" not in sent
    assert "sk-peer" not in repr(order)


def test_a_model_of_ours_never_goes_to_a_peer() -> None:
    assert _order("POST", CHAT, b'{"model": "chat"}').peer is None
    assert _order("POST", CHAT, b'{"model": "hidden"}').peer is None


@pytest.mark.parametrize("model", ["big", "org/huge", "chat", "hidden"])
def test_with_the_peers_name_before_it_a_model_is_always_the_peers(model: str) -> None:
    order = _order("POST", CHAT, json.dumps({"model": f"far/{model}"}).encode())

    assert order.peer is not None
    assert json.loads(content(order)) == {"model": model, "n": 1}


def test_any_path_of_a_peers_server_can_be_asked_for_and_looked_at() -> None:
    passed, looked = _order("GET", "/upstream/org/huge/a%2Fb"), _order("GET", "/props?model=big")

    assert passed.peer is not None
    assert passed.peer.addressed(passed.head).startswith(b"GET /api/a%2Fb HTTP/1.1\r\n")
    assert looked.peer is not None


def test_a_job_that_a_peer_does_is_the_peers() -> None:
    assert _order("POST", "/sdcpp/v1/img_gen", b'{"model": "big"}').via == ""


def test_the_list_shows_what_peers_have_and_whose_it_is() -> None:
    answer = call(_app(), environ_of("GET", "/v1/models"))

    assert isinstance(answer, Answer)
    owners = {m["id"]: m["owned_by"] for m in json.loads(answer.body)["data"]}
    assert owners["big"] == owners["org/huge"] == "far"
    assert owners["chat"] == "qmsup"
    assert "hidden" not in owners
    assert "far/big" not in owners


@pytest.mark.parametrize("target", ["/logs?model=big", "/logs/stream/far/chat"])
def test_the_log_of_a_peers_model_is_the_peers(target: str) -> None:
    refused = call(_app(), environ_of("GET", target))

    assert isinstance(refused, Answer)
    assert refused.status == 404
    assert "the peer far's, and so is its log" in refused.error["message"]


def test_a_listener_with_groups_shows_nothing_of_peers() -> None:
    answer = call(_app(AGENTS), environ_of("POST", CHAT, b'{"model": "big"}'))

    assert isinstance(answer, Answer)
    assert (answer.status, answer.code) == (404, "model_not_found")


@pytest.mark.parametrize("trust", [None, "anyone", ""])
def test_only_those_behind_https_are_spoken_to_over_tls(trust: str | None) -> None:
    peer = replace(_FAR, upstream="[::1]:443", trust=trust)
    host = HostSpec(name=HostName("box"), upstream="far.example:443", trust=trust)
    spec = Spec(models={}, hosts={host.name: host}, peers={peer.name: peer})

    remotes = remotes_of(spec)

    assert {remote.tls is not None for remote in remotes.values()} == {trust is not None}


@pytest.mark.parametrize("key", ["", "sk"])
def test_hosts_are_spoken_to_with_their_key(key: str) -> None:
    host = HostSpec(name=HostName("box"), upstream="10.0.0.3:8080", api_key=key)
    spec = Spec(models={}, hosts={host.name: host}, listeners={MAIN: ListenerSpec(name=MAIN)})

    remote = remotes_of(spec)[host.name]

    assert (remote.upstream, b"Bearer sk" in remote.lines) == ("10.0.0.3:8080", bool(key))
