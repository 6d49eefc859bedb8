"""Other machines as a client of a whole box sees them: behind TLS, and in a circle with this one."""

import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from tests.support.box import Box, serving, until
from tests.support.certificates import certificate, needs_openssl, secure_upstream
from tests.support.upstreams import Upstream, plain, upstream

pytestmark = [pytest.mark.system, needs_openssl]


def _llama(connection: socket.socket, request: bytes) -> None:
    """As much of a llama-server as is asked for."""
    told = {
        "/health": {"status": "ok"},
        "/v1/models": {"data": [{"id": "chat"}]},
        "/slots": [{"id": 0}],
        "/props": {"default_generation_settings": {"n_ctx": 4096}},
    }
    path = urlsplit(request.split(b" ", 2)[1].decode()).path
    connection.sendall(plain(json.dumps(told.get(path, {"path": path})).encode()))


@pytest.fixture(scope="module")
def boxes() -> Iterator[tuple[Box, Upstream]]:
    """A box, and what stands between it and itself: something that a box cannot see through."""
    ports: list[int] = []

    def pass_on(connection: socket.socket, request: bytes) -> None:
        with socket.create_connection(("127.0.0.1", ports[0]), 20) as back:
            back.sendall(request)
            while data := back.recv(65536):
                connection.sendall(data)

    trust = str(certificate().file)
    with secure_upstream(_llama) as far, upstream(pass_on) as between:
        url = f"https://localhost:{far.where.rpartition(':')[2]}"
        fleet: dict[str, Any] = {
            "hosts": {"box": {"url": url, "trust": trust, "models": {"chat": {}}}},
            "routes": {"r": {"hosts": ["box"], "default_model": "chat"}},
            "peers": {
                "far": {"proxy": f"{url}/api", "trust": trust, "models": ["big"]},
                "doubtful": {"proxy": url, "models": ["odd"]},
                "round": {"proxy": f"http://{between.where}", "models": ["lost"]},
            },
        }
        with serving({}, **fleet) as box:
            ports.append(box.ports["main"])
            yield box, between


def test_a_host_and_a_peer_behind_tls_are_served_like_others(boxes: tuple[Box, Upstream]) -> None:
    box, _ = boxes
    seen = until(lambda: [h for h in box.told("hosts")["hosts"] if h["healthy"]], what="healthy")
    assert seen[0]["url"].startswith("https://localhost:")

    by_route = requests.post(
        box.url("/route/r/v1/chat/completions"), json={"messages": []}, timeout=20
    )
    by_peer, doubtful = box.chat("big"), box.chat("odd")

    assert by_route.json() == {"path": "/v1/chat/completions"}
    assert by_route.headers["X-QM-Host"] == "box"
    assert by_peer.json() == {"path": "/api/v1/chat/completions"}
    assert doubtful.status_code == 502
    assert "its certificate is not trusted" in doubtful.json()["error"]["message"]


def test_a_request_that_comes_back_is_refused_and_both_are_named(
    boxes: tuple[Box, Upstream],
) -> None:
    box, between = boxes

    answer = box.chat("lost")

    assert answer.status_code == 502
    message = answer.json()["error"]["message"]
    assert "goes in a circle" in message
    assert f"port main (127.0.0.1:{box.ports['main']})" in message
    assert f"peer round ({between.where})" in message
    assert len(between.requests) == 1
