"""One connection by itself: real sockets, and a keeper that writes down what it is told."""

import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from qmsup.ids import ListenerName
from qmsup.listener.link import Link
from qmsup.listener.relay.asks import ask_of
from qmsup.listener.relay.course import Course
from qmsup.listener.relay.errands import Errands
from qmsup.listener.relay.loop import Loop
from qmsup.listener.relay.names import Names
from qmsup.listener.relay.upstream import Upstream
from qmsup.units import Seconds
from tests.support.granting import PATIENCE, grant
from tests.support.relaying import ending_context, order
from tests.support.servers import free_port


class Trying:
    """A keeper, and all that its connection takes.

    Attributes:
        told: what it heard, in order.
    """

    def __init__(self, loop: Loop, link: Link) -> None:
        self.loop = loop
        self.link = link
        self.errands = Errands(loop)
        self.told: list[str] = []
        self.answer = b""
        self.upstream: Upstream | None = None

    def begin(self, where: str, body: bytes = b"abc") -> Upstream:
        course = Course(order(body))
        assert course.order is not None
        course.granted(grant(ask_of(course.order), where), self.link)
        sending = course.begin()
        assert sending is not None
        self.upstream = Upstream(self.loop, self, sending)
        self.upstream.begin(Names(self.loop, self.errands), course)
        return self.upstream

    def until(self, condition: Callable[[], bool]) -> None:
        end = self.loop.now + PATIENCE
        while not condition():
            assert self.loop.now < end, self.told
            self.loop.turn(0.1)

    def on_sent(self) -> None:
        self.told.append("sent")

    def on_answer(self, data: bytes) -> None:
        self.answer += data
        self.told.append("answer" if data else "end")
        if not data and self.upstream is not None:
            self.upstream.close()

    def on_lost(self, error: OSError) -> None:
        self.told.append(type(error).__name__)

    def give_up(self) -> None:
        self.told.append("given up")


@pytest.fixture
def trying(places: Path) -> Iterator[Trying]:
    with ending_context(), closing(Loop()) as loop:
        link = Link(ListenerName("main"), endpoint="ipc:///nowhere", grace=Seconds(5.0))
        trying = Trying(loop, link)
        yield trying
        if trying.upstream is not None:
            trying.upstream.close()
        trying.errands.close()
        link.close()


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE)
        yield server


def _where(server: socket.socket) -> str:
    return f"127.0.0.1:{server.getsockname()[1]}"


def test_the_request_goes_out_and_the_answer_comes_in(
    trying: Trying, server: socket.socket
) -> None:
    upstream = trying.begin(_where(server))
    child, _ = server.accept()
    with child:
        assert child.recv(9999).endswith(b"abc")
        child.sendall(b"hello")
        trying.until(lambda: "answer" in trying.told)
    trying.until(lambda: "end" in trying.told)

    assert trying.told == ["sent", "answer", "end"]
    assert trying.answer == b"hello"
    assert not upstream.is_made


def test_while_it_is_paused_nothing_is_read(trying: Trying, server: socket.socket) -> None:
    upstream = trying.begin(_where(server))
    child, _ = server.accept()
    with child:
        trying.until(lambda: upstream.is_made)
        upstream.pause()
        upstream.pause()
        child.sendall(b"hello")
        for _ in range(3):
            trying.loop.turn(0.01)
        assert trying.answer == b""

        upstream.go_on()
        trying.until(lambda: trying.answer == b"hello")


def test_where_nobody_is_that_is_told_once(trying: Trying) -> None:
    trying.begin(f"127.0.0.1:{free_port()}")

    trying.until(lambda: bool(trying.told))

    assert trying.told == ["ConnectionRefusedError"]


def test_a_child_that_wants_no_more_of_a_request_is_heard(
    trying: Trying, server: socket.socket
) -> None:
    upstream = trying.begin(_where(server), b"x" * (32 << 20))
    child, _ = server.accept()
    with child:
        child.sendall(b"enough")
        child.shutdown(socket.SHUT_WR)
        trying.until(lambda: "end" in trying.told)

    assert trying.answer == b"enough"
    assert not upstream.is_made


def test_what_was_closed_says_nothing_more(trying: Trying, server: socket.socket) -> None:
    upstream = trying.begin(_where(server))
    child, _ = server.accept()
    with child:
        upstream.close()
        child.sendall(b"hello")
        for _ in range(3):
            trying.loop.turn(0.01)

    assert trying.told == ["sent"]
    upstream.go_on()
    upstream.pause()
    assert not upstream.is_made


def test_what_fails_in_it_is_its_keepers_end(trying: Trying, server: socket.socket) -> None:
    trying.begin(_where(server)).give_up()

    assert trying.told == ["sent", "given up"]


def test_a_connection_that_takes_too_long_is_told_apart_from_one_that_was_made(
    trying: Trying, server: socket.socket
) -> None:
    upstream = trying.begin(_where(server))

    assert upstream.is_too_late(None, trying.loop.now + 3600.0) == ""
