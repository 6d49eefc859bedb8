"""Websockets under `/upstream`: tunnels that hold a lease and no thread."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import requests

from tests.support.box import Box, fake, serving, until

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    models = {
        "talk": fake("--name talk", concurrencyLimit=100),
        "other": fake("--name other"),
    }
    listeners = {"main": {}, "locked": {"apiKeys": ["sk-secret"]}}
    with serving(models, listeners=listeners, vramBudgetGB=4) as box:
        yield box


def tunnel(box: Box, listener: str = "main", more: str = "", model: str = "talk") -> socket.socket:
    """Ask for one."""
    wire = socket.create_connection(("127.0.0.1", box.ports[listener]), 20)
    head = f"GET /upstream/{model}/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n{more}"
    head += "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: aGk=\r\n\r\n"
    wire.sendall(head.encode())
    return wire


def heard(wire: socket.socket, until_seen: bytes) -> bytes:
    data = b""
    while until_seen not in data:
        part = wire.recv(65536)
        assert part, data
        data += part
    return data


def inflight(box: Box, model: str = "talk") -> int:
    running = requests.get(box.url("/running"), timeout=20).json()["running"]
    return next((int(m["inflight"]) for m in running if m["model"] == model), 0)


def test_it_loads_its_model_and_carries_bytes_both_ways(box: Box) -> None:
    assert box.run("unload", "talk").returncode == 0  # another test may have had it loaded
    with tunnel(box) as wire:
        head = heard(wire, b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101")
        assert b"X-QM-Model: talk" in head
        assert b"X-QM-Model-Loaded: 1" in head
        wire.sendall(b"\x81\x05hello")
        assert heard(wire, b"hello") == b"\x81\x05hello"
        assert inflight(box) == 1
    until(lambda: inflight(box) == 0)


def test_a_key_is_wanted_for_it_and_goes_no_further(box: Box) -> None:
    with tunnel(box, "locked") as wire:
        assert heard(wire, b"}}").startswith(b"HTTP/1.1 401")
    with tunnel(box, "locked", "Authorization: Bearer sk-secret\r\n") as wire:
        assert heard(wire, b"\r\n\r\n").startswith(b"HTTP/1.1 101")


def test_many_of_them_take_no_threads_and_much_passes_whole(box: Box) -> None:
    blob = bytes(range(256)) * 256
    with ExitStack() as stack:
        wires = [stack.enter_context(tunnel(box)) for _ in range(80)]
        for wire in wires:
            heard(wire, b"\r\n\r\n")
        assert inflight(box) == 80
        threads = sum(p.num_threads() for p in box.listener().children())
        assert threads < 50
        for wire in wires:
            wire.sendall(blob)
        for wire in wires:
            got = b""
            while len(got) < len(blob):
                got += wire.recv(1 << 20)
            assert got == blob
    until(lambda: inflight(box) == 0)


def test_an_unload_resets_it(box: Box) -> None:
    with tunnel(box) as wire:
        heard(wire, b"\r\n\r\n")
        assert box.run("unload", "talk").returncode == 0
        with pytest.raises(ConnectionResetError):
            wire.recv(1)


def test_a_server_that_speaks_no_websocket_says_so(box: Box) -> None:
    with tunnel(box, model="talk/no") as wire:
        answer = heard(wire, b"}}")

    assert answer.startswith(b"HTTP/1.1 404")
    assert b"File Not Found" in answer
