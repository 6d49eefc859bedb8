"""Looks at hosts: real servers that answer as llama-server, its router and another qmsup do, and as nobody should."""

import json
import socket
from collections.abc import Mapping

import pytest

from qmsup.core.fleet.sights import HostKind, Sight
from qmsup.ids import HostName, ModelId
from qmsup.spec import HostSpec, SlotsSpec
from qmsup.upstream.host_look import Looker
from tests.support.certificates import certificate, needs_openssl, secure_upstream
from tests.support.servers import free_port
from tests.support.upstreams import Script, upstream

_CHAT, _CODE = ModelId("chat"), ModelId("code")
_PROPS = {"total_slots": 4, "default_generation_settings": {"n_ctx": 4096}}


def _answers(table: Mapping[str, object]) -> Script:
    """A server that answers these paths with 200 and JSON, or bytes as they are, and nothing else."""

    def answer(connection: socket.socket, request: bytes) -> None:
        path = request.split(b" ", 2)[1].decode()
        told = table.get(path)
        status = "404 Not Found" if told is None else "200 OK"
        body = told if isinstance(told, bytes) else json.dumps(told).encode()
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        connection.sendall(head.encode() + body)

    return answer


def _looker(where: str, *models: ModelId, key: str = "") -> Looker:
    slots = {model: SlotsSpec() for model in models}
    return Looker(HostSpec(name=HostName("box"), upstream=where, api_key=key, models=slots))


def _look(table: Mapping[str, object], *models: ModelId) -> Sight:
    with upstream(_answers({"/health": {"status": "ok"}, **table})) as server:
        return _looker(server.where, *models).look()


def test_a_llama_server_has_its_one_model_under_any_name() -> None:
    sight = _look(
        {
            "/v1/models": {"data": [{"id": "chat.gguf", "aliases": ["c", 5]}]},
            "/props": _PROPS,
            "/slots": [{"is_processing": True}, {"is_processing": False}, {"is_processing": True}],
        },
        _CHAT,
    )

    assert sight.is_healthy
    assert sight.kind is HostKind.LLAMA_SERVER
    assert sight.loaded == {"chat", "chat.gguf", "c"}
    assert sight.contexts[_CHAT] == 4096
    assert (sight.slots, sight.busy) == (3, 2)


def test_of_several_models_a_llama_server_has_those_that_it_names() -> None:
    sight = _look({"/v1/models": {"data": [{"id": "chat"}]}, "/props": _PROPS}, _CHAT, _CODE)

    assert sight.loaded == {"chat"}
    assert (sight.slots, sight.busy) == (4, None)


def test_a_router_tells_what_it_has_loaded_and_how_large_each_slot_is() -> None:
    listed = [
        {"id": "chat", "status": {"value": "loaded"}},
        {"id": "other", "status": {"value": "loaded"}},
        {"id": "code", "status": {"value": "unloaded"}},
    ]

    sight = _look({"/v1/models": {"data": listed}, "/props?model=chat": _PROPS}, _CHAT, _CODE)

    assert sight.kind is HostKind.ROUTER
    assert sight.loaded == {"chat", "other"}
    assert sight.contexts == {"chat": 4096}
    assert (sight.slots, sight.busy) == (None, None)


def test_another_qmsup_tells_what_is_ready_there() -> None:
    running = [
        {"model": "chat", "state": "ready"},
        {"model": "code", "state": "starting"},
        "no entry",
    ]

    sight = _look({"/running": {"running": running}}, _CHAT, _CODE)

    assert sight.kind is HostKind.QMSUP
    assert sight.loaded == {"chat"}


UNREADABLE: dict[str, dict[str, object]] = {
    "nothing": {},
    "no JSON": {"/v1/models": b"<html>", "/running": b"\xff", "/slots": b"{", "/props": b"["},
    "other shapes": {
        "/v1/models": {"data": [5, {"id": 3}, {"status": "x"}]},
        "/running": [],
        "/slots": {"a": 1},
        "/props": {"total_slots": True, "default_generation_settings": 5},
    },
    "deep": {"/v1/models": b"[" * 100_000},
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_cannot_be_read_is_not_loaded(case: str) -> None:
    sight = _look(UNREADABLE[case], _CHAT, _CODE)

    assert sight.is_healthy
    assert (sight.loaded, sight.contexts, sight.slots) == (frozenset(), {}, None)


def test_a_host_that_is_loading_is_not_healthy() -> None:
    def loading(connection: socket.socket, _: bytes) -> None:
        connection.sendall(b"HTTP/1.1 503 Loading\r\nContent-Length: 0\r\n\r\n")

    with upstream(loading) as server:
        sight = _looker(server.where).look()

    assert (sight.is_healthy, sight.because) == (False, "/health answered 503")


def test_a_host_that_is_not_there_is_not_healthy() -> None:
    sight = _looker(f"127.0.0.1:{free_port()}").look()

    assert (sight.is_healthy, sight.because) == (False, "it cannot be reached")


def test_a_host_that_hangs_is_not_healthy() -> None:
    def hang(connection: socket.socket, _: bytes) -> None:
        while connection.recv(1024):
            pass

    with upstream(hang) as server:
        sight = _looker(server.where).look()

    assert sight.because == "/health did not answer within 2 s"


@needs_openssl
@pytest.mark.parametrize("trust", ["", "/nowhere/ca.pem", "its own"])
def test_a_host_over_https_is_looked_at_if_it_is_trusted(trust: str) -> None:
    file = str(certificate().file) if trust == "its own" else trust
    table = {"/health": {}, "/v1/models": {"data": [{"id": "chat"}]}, "/props": _PROPS}
    with secure_upstream(_answers(table)) as server:
        looker = Looker(HostSpec(name=HostName("box"), upstream=server.where, trust=file))
        sights = [looker.look(), looker.look()]

    if trust == "its own":
        assert [sight.loaded for sight in sights] == [{"chat"}] * 2
    else:
        assert not sights[1].is_healthy
        assert "certificate" in sights[1].because


def test_a_host_that_speaks_something_else_is_not_healthy() -> None:
    with upstream(lambda connection, _: connection.sendall(b"hello\r\n\r\n")) as server:
        sight = _looker(server.where).look()

    assert not sight.is_healthy
    assert sight.because


def test_contexts_are_asked_for_again_only_when_other_models_are_there() -> None:
    table: dict[str, object] = {
        "/health": {},
        "/v1/models": {"data": [{"id": "chat"}]},
        "/props": _PROPS,
        "/slots": [{}],
    }
    with upstream(_answers(table)) as server:
        looker = _looker(server.where, _CHAT, key="sk-host")
        assert looker.look().contexts == looker.look().contexts == {"chat": 4096}
        asked = [request.split(b" ", 2)[1] for request in server.requests]
        assert asked.count(b"/props") == 1
        assert all(b"Authorization: Bearer sk-host" in request for request in server.requests)
        table["/v1/models"] = {"data": []}
        assert looker.look().contexts == {}
        table["/v1/models"] = {"data": [{"id": "chat"}]}
        assert looker.look().contexts == {"chat": 4096}
