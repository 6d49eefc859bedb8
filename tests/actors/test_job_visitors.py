"""Who comes in by the door for jobs, and never leaves by itself."""

import logging
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, cast

import pykka
import pytest
from typing_extensions import override

from qmsup.actors import job_visitors
from qmsup.actors.inbox import PollingInbox
from qmsup.actors.job_calls import Turn
from qmsup.actors.job_door import Visit, Visitor, open_door
from qmsup.actors.job_visitors import Visitors
from qmsup.actors.tree import end_actors
from qmsup.log import Log
from qmsup.units import Seconds
from tests.support.box import until
from tests.support.descriptors import no_descriptor_left

LARGE = 4 * 1024 * 1024
"""More than a socket takes."""


class _Host(pykka.ThreadingActor):
    """Answers everybody at once, with much."""

    def __init__(self, door: socket.socket) -> None:
        super().__init__()
        self._inbox = cast("PollingInbox", self.actor_inbox)
        self.visitors = Visitors(door, self._inbox, serve=self._serve, make_room=lambda: None)

    @staticmethod
    @override
    def _create_actor_inbox() -> PollingInbox:
        return PollingInbox()

    @override
    def on_start(self) -> None:
        self.visitors.open()

    @override
    def on_stop(self) -> None:
        self.visitors.close()
        self._inbox.close()

    @override
    def on_receive(self, message: object) -> int:
        if isinstance(message, Turn):
            message.do()
        elif message != "how many":
            self.visitors.work(Seconds(time.monotonic()))
        self._inbox.wake_at(self.visitors.due)
        return len(self.visitors)

    def _serve(self, visitor: Visitor, visit: Visit) -> None:
        visit.body.close()
        self.visitors.answer(visitor, 200, "", b"z" * LARGE)


class House:
    """The door, who is behind it, and who comes."""

    def __init__(self, path: Path, leaves: ExitStack) -> None:
        self._leaves = leaves
        self.door = leaves.enter_context(closing(open_door(path / "jobs.sock")))
        self._host = _Host.start(self.door)

    def somebody(self, says: bytes = b"") -> socket.socket:
        """Comes, says this, and stays."""
        client = self._leaves.enter_context(socket.socket(socket.AF_UNIX))
        client.settimeout(20)
        client.connect(self.door.getsockname())
        client.sendall(says)
        return client

    def is_served(self) -> bool:
        """Somebody in earnest gets all of the answer."""
        client = self.somebody(b"GET / HTTP/1.1\r\n\r\n")
        left = LARGE
        while left > 0 and (chunk := client.recv(LARGE)):
            left -= len(chunk)
        client.close()
        return left <= 0

    def inside(self) -> int:
        """How many are."""
        told: Any = self._host.ask("how many")
        return int(told)


@pytest.fixture
def house(places: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    monkeypatch.setattr(job_visitors, "_log", Log("jobs"))  # with lines to spare
    with ExitStack() as leaves:
        yield House(places, leaves)
        end_actors()


def test_who_says_nothing_leaves_the_place_to_others_and_goes_first(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_visitors, "_MOST", 3)
    crowd = [house.somebody(b"GET / HT") for _ in range(10)]

    assert house.is_served()
    until(lambda: house.inside() == 2)
    assert [each.recv(1) for each in crowd[:8]] == [b""] * 8


def test_who_reads_nothing_leaves_the_place_to_others(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_visitors, "_MOST", 3)
    for _ in range(10):
        house.somebody(b"GET / HTTP/1.1\r\n\r\n")

    assert house.is_served()
    assert house.inside() <= 3


@pytest.mark.parametrize(
    "says", [b"", b"POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\n{", b"GET / HTTP/1.1\r\n\r\n"]
)
def test_who_takes_too_long_is_sent_away(
    house: House, says: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(job_visitors, "_WHOLE_WITHIN", Seconds(0.05))
    house.somebody(says)
    until(lambda: "job.visitor_too_slow" in caplog.messages)

    assert house.inside() == 0


def test_a_process_without_descriptors_waits_for_some_without_haste(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    monkeypatch.setattr(job_visitors, "_SHUT_FOR", Seconds(0.1))
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        with no_descriptor_left():
            client.connect(house.door.getsockname())
            until(lambda: caplog.messages.count("job.nobody_let_in") == 2)
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert client.recv(15) == b"HTTP/1.1 200 OK"
