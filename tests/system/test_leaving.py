"""A client that goes away is noticed in every phase of its request, however it goes, and its child is left alone."""

import socket
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import psutil
import pytest
import requests

from tests.support.box import Box, fake, serving, until
from tests.support.streams import RawStream

pytestmark = pytest.mark.system

NOTICED_WITHIN = 5.0
"""Much more than it takes, for a machine that has other things to do."""


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    models = {
        "slow": fake("--name slow --event-interval 0.02", concurrencyLimit=1),
        "never": fake("--name never --load-seconds 600"),
        "thinks": fake("--name thinks --first-byte-seconds 5"),
        "mute": fake("--name mute --stall posts"),
        "paced": fake("--name paced --event-interval 0.02 --paces-json"),
    }
    with serving(models, vramBudgetGB=4, sendLoadingState=True) as box:
        yield box


def close(stream: RawStream) -> None:
    stream.wire.close()


def reset(stream: RawStream) -> None:
    stream.wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stream.wire.close()


def half_close(stream: RawStream) -> None:
    stream.wire.shutdown(socket.SHUT_WR)


def close_unread(stream: RawStream) -> None:
    """With a second request on the way, which nobody has read yet."""
    stream.wire.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
    stream.wire.close()


WAYS: tuple[Callable[[RawStream], None], ...] = (close, reset, half_close, close_unread)


@dataclass(frozen=True)
class Phase:
    """How a request comes there, and how it is seen there.

    Attributes:
        model: that is asked for.
        behind: a stream on this model comes first.
        is_upstream: its child has it.
        waits_for: what the client sees before it goes; it sees nothing if it does not stream.
    """

    model: str
    behind: str = ""
    is_upstream: bool = False
    waits_for: bytes = b""


PHASES: Mapping[str, Phase] = {
    "waiting": Phase("slow", behind="slow", waits_for=b": qm-status: waiting 1"),
    "loading": Phase("never", waits_for=b": qm-status: loading"),
    "prefill": Phase("thinks", is_upstream=True),
    "streaming": Phase("slow", is_upstream=True, waits_for=b"slow3 "),
    "a whole answer": Phase("paced", is_upstream=True),
    "a stalled child": Phase("mute", is_upstream=True),
}


def row(box: Box, model: str) -> dict[str, Any]:
    running = requests.get(box.url("/running"), timeout=20).json()["running"]
    return next((m for m in running if m["model"] == model), {"inflight": 0, "state": "stopped"})


def waiting(box: Box, model: str) -> int:
    told = requests.get(box.url("/api/queue"), timeout=20).json()
    in_line = [w for w in told["queue"] if w["model"] == model]
    return len(in_line) + sum(int(w["waiting"]) for w in told["loading"] if w["model"] == model)


def connected(box: Box, model: str) -> int:
    """Open connections to a model's child."""
    port = row(box, model).get("port")
    return sum(
        len(c.raddr) > 0 and c.raddr[1] == port and c.status == psutil.CONN_ESTABLISHED
        for c in psutil.net_connections("tcp4")
    )


@pytest.mark.parametrize("streams", [True, False], ids=["streaming", "silent"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", PHASES)
def test_a_client_that_leaves_is_noticed(
    box: Box, name: str, way: Callable[[RawStream], None], *, streams: bool
) -> None:
    phase = PHASES[name]
    if name == "streaming" and not streams:
        pytest.skip("it streams")
    with ExitStack() as stack:
        if phase.behind:
            stack.enter_context(RawStream(box, phase.behind)).until_seen(b"slow1 ")
        client = stack.enter_context(RawStream(box, phase.model, stream=streams))
        if streams and phase.waits_for:
            client.until_seen(phase.waits_for)
        if phase.is_upstream:
            until(lambda: connected(box, phase.model) == 1, what="its child has it")
            assert row(box, phase.model)["inflight"] == 1
        else:
            until(lambda: waiting(box, phase.model) == 1, what="it waits")

        way(client)

        if phase.is_upstream:
            until(lambda: connected(box, phase.model) == 0, within=NOTICED_WITHIN)
            until(lambda: row(box, phase.model)["inflight"] == 0, within=NOTICED_WITHIN)
        else:
            until(lambda: waiting(box, phase.model) == 0, within=NOTICED_WITHIN)
