"""`/api/events` of a whole box: what clients of llama-swap hear."""

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
import requests

from tests.support.box import Box, fake, serving, until

pytestmark = pytest.mark.system

LISTENERS: dict[str, dict[str, Any]] = {
    "main": {},
    "other": {"groups": ["others"]},
    "locked": {"apiKeys": ["sk-1"]},
}


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    models = {
        "chat": fake("--name chat", name="Chat", description="talks", aliases=["gpt"]),
        "elsewhere": fake("--name elsewhere"),
    }
    groups = {"others": {"members": ["elsewhere"]}}
    with serving(models, listeners=LISTENERS, groups=groups, vramBudgetGB=100) as box:
        yield box


class Listening:
    """A client, and what it has heard so far: kind and data of each event."""

    def __init__(self, box: Box, listener: str = "main") -> None:
        self.heard: list[tuple[str, Any]] = []
        self._sock = socket.create_connection(("127.0.0.1", box.ports[listener]))
        self._sock.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self._lines = self._sock.makefile("rb")
        self.head = b"".join(iter(self._lines.readline, b"\r\n")).decode()
        assert self.head.startswith("HTTP/1.1 200 OK"), self.head
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        with contextlib.suppress(ConnectionError):  # closed here
            for line in self._lines:
                if line.startswith(b"data:"):
                    envelope = json.loads(line.removeprefix(b"data:"))
                    self.heard.append((envelope["type"], json.loads(envelope["data"])))

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def of(self, kind: str) -> list[Any]:
        return [data for heard, data in self.heard if heard == kind]

    def states(self, model: str) -> list[str]:
        """Each state that it was said to be in, one after the other."""
        return [m["state"] for listed in self.of("modelStatus") for m in listed if m["id"] == model]

    def logged(self, source: str) -> str:
        return "".join(told["data"] for told in self.of("logData") if told["source"] == source)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(20)
        self._lines.close()
        self._sock.close()
        assert not self._thread.is_alive()


@pytest.fixture
def listening(box: Box) -> Iterator[Listening]:
    client = Listening(box)
    yield client
    client.close()


def test_it_begins_with_how_things_stand(box: Box, listening: Listening) -> None:
    until(lambda: {"modelStatus", "inflight"} <= {kind for kind, _ in listening.heard})

    (chat,) = [m for m in listening.of("modelStatus")[0] if m["id"] == "chat"]
    assert (chat["name"], chat["description"], chat["aliases"]) == ("Chat", "talks", ["gpt"])
    assert chat["state"] in {"stopped", "ready"}
    assert (chat["unlisted"], chat["peerID"]) == (False, "")
    assert "Content-Type: text/event-stream\r\n" in listening.head
    assert "X-Accel-Buffering: no\r\n" in listening.head


def test_states_requests_and_logs_are_told_as_they_change(box: Box, listening: Listening) -> None:
    box.run("unload", "chat")
    until(lambda: listening.states("chat")[-1:] == ["stopped"])
    before = len(listening.of("modelStatus"))

    answer = box.chat("chat", max_tokens=7)

    assert answer.status_code == 200
    until(lambda: listening.states("chat")[-1:] == ["ready"])
    assert len(listening.of("modelStatus")) > before
    entry = until(
        lambda: next(
            (e for told in listening.of("metrics") for e in told if e["output_tokens"] == 7), None
        )
    )
    assert entry is not None
    assert (entry["model"], entry["resp_status_code"], entry["input_tokens"]) == ("chat", 200, 1)
    assert entry["tokens"]["output_tokens"] == 7
    assert entry["req_path"] == "/v1/chat/completions"
    until(lambda: "listening on http://" in listening.logged("upstream"))
    until(lambda: "swap.done model=chat" in listening.logged("proxy"))


def test_a_port_tells_of_its_own_models_alone(box: Box) -> None:
    client = Listening(box, "other")
    try:
        box.chat("chat")
        box.chat("elsewhere")

        until(lambda: any(told for told in client.of("metrics")))
        said = json.dumps(client.heard)
        assert "elsewhere" in said
        assert "chat-" not in said
        assert '"chat"' not in said
    finally:
        client.close()


def test_who_comes_later_is_told_of_requests_before(box: Box) -> None:
    box.chat("chat", max_tokens=9)
    until(lambda: box.told("ps")["models"])
    client = Listening(box)
    try:
        until(lambda: any(e["output_tokens"] == 9 for told in client.of("metrics") for e in told))
    finally:
        client.close()


def test_it_wants_the_key_and_only_looks(box: Box) -> None:
    assert requests.get(box.url("/api/events", "locked"), timeout=10).status_code == 401
    assert requests.post(box.url("/api/events"), timeout=10).status_code == 405
    head = requests.head(box.url("/api/events"), timeout=10)
    assert (head.status_code, head.headers["Content-Type"]) == (200, "text/event-stream")
    assert (
        requests.options(box.url("/api/events"), timeout=10).headers["Allow"]
        == "GET, HEAD, OPTIONS"
    )


def test_many_who_look_on_cost_one_thread_and_are_bounded(box: Box) -> None:
    worker = next(p for p in box.listener("main").children())

    def threads() -> int:
        return psutil.Process(worker.pid).num_threads()

    requests.get(box.url("/health"), timeout=10)
    clients = [requests.get(box.url("/api/events"), stream=True, timeout=10) for _ in range(64)]
    first = threads()
    refused = requests.get(box.url("/api/events"), timeout=10)

    assert [c.status_code for c in clients] == [200] * 64
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "queue_full")
    assert first < 64
    for client in clients:
        client.close()
    until(lambda: requests.get(box.url("/api/events"), stream=True, timeout=10).status_code == 200)


def test_an_end_of_the_box_does_not_wait_for_who_looks_on() -> None:
    with serving({"chat": fake("--name chat")}) as box:
        client = Listening(box)
        try:
            assert box.stop() == 0, box.log()
            until(lambda: client.is_over, what="the stream ends")
        finally:
            client.close()


def test_after_a_reload_who_looks_on_has_to_come_again(box: Box) -> None:
    client = Listening(box)
    try:
        config = box.folder / "config.yaml"
        config.write_text(
            json.dumps({**json.loads(config.read_text()), "x-note": "another version"})
        )
        assert box.run("reload").returncode == 0
        until(lambda: client.is_over, what="the stream ends")
    finally:
        client.close()
    again = Listening(box)
    until(lambda: again.of("modelStatus"))
    again.close()
