"""Clients that look on, over real sockets; what there is to see comes from a real feed."""

import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmsup import places as where
from qmsup.ids import Epoch, ModelId, RequestId
from qmsup.listener.relay import onlookers
from qmsup.listener.relay.watch import Watch
from qmsup.spec import ModelSpec
from qmsup.transport.feed import FeedSocket
from qmsup.wire import controlling
from tests.support.granting import GrantingScheduler
from tests.support.relaying import (
    Relaying,
    read_all,
    read_until,
    relaying_with_scheduler,
    wait_until,
)

M = ModelId("m")
MODELS = {M: ModelSpec(id=M, argv=("x",))}
SO_FAR = b"event:message\ndata:so far\n\n"
Box = tuple[Relaying, GrantingScheduler]


class Feed:
    """A scheduler's feed with one model, and its answer to who subscribes."""

    def __init__(self) -> None:
        self._socket = FeedSocket(where.feed_endpoint())
        self._seq = 0

    def subscription(self, question: controlling.Question) -> controlling.Reply | None:
        if question.verb != "subscribe":
            return None
        body = {
            "epoch": 1,
            "seq": {"model": self._seq},
            "state": {"model.m": {"name": "m", "state": "stopped", "inflight": 0}},
        }
        return controlling.Reply(v=controlling.VERSION, id=question.id, ok=True, body=body)

    def tell(self, state: str) -> None:
        """Greet who came, and tell how the model stands."""
        self._socket.look()
        self._socket.greet()
        self._seq += 1
        body = {"name": "m", "state": state, "inflight": self._seq}
        self._socket.publish(Epoch(1), self._seq, 1.0, "model.m", body)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def box(places: Path) -> Iterator[Box]:
    with relaying_with_scheduler() as both:
        yield both


def watching(box: Box, number: int = 1) -> socket.socket:
    engine, _ = box
    client, ours = engine.connection()
    watch = Watch(
        request=RequestId(f"q-{number}"), models=MODELS, so_far=SO_FAR, origin="http://page"
    )
    engine.do(
        lambda: engine.engine.hold(
            ours, watch, is_http11=True, keeps_alive=True, give_back=engine.ends.append
        )
    )
    return client


def states_in(said: bytes) -> list[str]:
    """Each state that the model was said to be in."""
    events = [json.loads(x[5:]) for x in said.splitlines() if x.startswith(b"data:{")]
    return [json.loads(e["data"])[0]["state"] for e in events if e["type"] == "modelStatus"]


def test_a_client_is_told_how_things_stand_at_once(box: Box) -> None:
    with watching(box) as client:
        said = read_until(client, SO_FAR)

    head = said.partition(b"\r\n\r\n")[0].decode()
    assert head.startswith("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")
    assert "X-QM-Request-Id: q-1" in head
    assert "Access-Control-Allow-Origin: http://page" in head


def test_news_of_the_feed_reach_every_client(box: Box) -> None:
    feed = Feed()
    box[1].on_question = feed.subscription
    clients = [watching(box, 1), watching(box, 2)]
    said = [b"", b""]

    def all_are_told() -> bool:
        feed.tell("ready")
        for number, client in enumerate(clients):
            client.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                said[number] += client.recv(65536)
        return all(
            b"\n\n" in one and "ready" in states_in(one.rpartition(b"\n\n")[0]) for one in said
        )

    try:
        wait_until(all_are_told)
    finally:
        feed.close()
        for client in clients:
            client.close()


def test_a_client_that_leaves_is_forgotten(box: Box) -> None:
    client = watching(box)
    read_until(client, SO_FAR)

    client.close()

    wait_until(lambda: box[0].ends == [False])


def test_too_many_are_refused(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onlookers, "MOST", 2)
    clients = [watching(box, number) for number in range(3)]

    said = read_all(clients[2])

    assert said.startswith(b"HTTP/1.1 429 ")
    assert b"Connection: close" in said
    for client in clients[:2]:
        client.close()


def test_all_are_sent_away_when_the_worker_ends(box: Box) -> None:
    client = watching(box)
    read_until(client, SO_FAR)

    box[0].do(box[0].engine.dismiss)

    assert read_all(client) == b""
    assert box[0].ends == [False]


def test_a_client_that_does_not_read_is_cut_off(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onlookers, "_MOST_UNREAD", 10_000)
    engine, _ = box
    client, ours = engine.connection()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    watch = Watch(request=RequestId("q-9"), models=MODELS, so_far=b"x" * 9000)
    looking = onlookers.Onlookers(engine.engine, lambda: None)

    def flood() -> None:
        for _ in range(400):
            for held in tuple(looking._clients):
                held.say(b"y" * 9000)

    with client:
        engine.do(lambda: looking.hold(ours, watch, engine.ends.append))
        engine.do(flood)

        wait_until(lambda: engine.ends == [False])
    engine.do(looking.end)
    engine.do(looking.close)
