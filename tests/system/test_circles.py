"""A model that boxes send to each other in a circle, here by way of something between that a box cannot see through."""

import socket

import pytest

from tests.support.box import serving
from tests.support.upstreams import upstream

pytestmark = pytest.mark.system


def test_a_request_that_comes_back_is_refused_and_both_are_named() -> None:
    ports: list[int] = []

    def pass_on(connection: socket.socket, request: bytes) -> None:
        with socket.create_connection(("127.0.0.1", ports[0]), 20) as back:
            back.sendall(request)
            while data := back.recv(65536):
                connection.sendall(data)

    with upstream(pass_on) as between:
        peers = {"far": {"proxy": f"http://{between.where}", "models": ["big"]}}
        with serving({}, peers=peers) as box:
            ports.append(box.ports["main"])
            answer = box.chat("big")

    assert answer.status_code == 502
    message = answer.json()["error"]["message"]
    assert "goes in a circle" in message
    assert f"port main (127.0.0.1:{ports[0]})" in message
    assert f"peer far ({between.where})" in message
    assert len(between.requests) == 1
