"""A host and a peer behind TLS, as a client of a whole box sees them."""

import json
import socket
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from tests.support.box import serving, until
from tests.support.certificates import certificate, needs_openssl, secure_upstream
from tests.support.upstreams import plain

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


def test_a_host_and_a_peer_behind_tls_are_served_like_others() -> None:
    trust = str(certificate().file)
    with secure_upstream(_llama) as far:
        url = f"https://localhost:{far.where.rpartition(':')[2]}"
        fleet: dict[str, Any] = {
            "hosts": {"box": {"url": url, "trust": trust, "models": {"chat": {}}}},
            "routes": {"r": {"hosts": ["box"], "default_model": "chat"}},
            "peers": {
                "far": {"proxy": f"{url}/api", "trust": trust, "models": ["big"]},
                "doubtful": {"proxy": url, "models": ["odd"]},
            },
        }
        with serving({}, **fleet) as box:
            until(lambda: box.told("hosts")["hosts"][0]["healthy"], what="the host is healthy")
            by_route = requests.post(
                box.url("/route/r/v1/chat/completions"), json={"messages": []}, timeout=20
            )
            by_peer, doubtful = box.chat("big"), box.chat("odd")

    assert by_route.json() == {"path": "/v1/chat/completions"}
    assert by_route.headers["X-QM-Host"] == "box"
    assert by_peer.json() == {"path": "/api/v1/chat/completions"}
    assert doubtful.status_code == 502
    assert "its certificate is not trusted" in doubtful.json()["error"]["message"]
