"""The socket that workers bring jobs to: whole requests in, whole answers out, and whoever leaves is noticed."""

import resource
import socket
import stat
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from qmsup.actors import job_door
from qmsup.actors.job_door import GoneError, Visit, Visitor, let_in, open_door
from qmsup.units import Seconds
from tests.support.box import until

_LARGE = 3 * 1024 * 1024


@pytest.fixture
def door(places: Path) -> Iterator[socket.socket]:
    with closing(open_door(places / "jobs.sock")) as door:
        yield door


@pytest.fixture
def pair(door: socket.socket) -> Iterator[tuple[socket.socket, Visitor]]:
    """A worker's end, and ours."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(door.getsockname())
        visitor = let_in(door)
        assert visitor is not None
        yield client, visitor
        visitor.close()
        visitor.close()


def received(client: socket.socket, visitor: Visitor, request: bytes) -> Visit:
    client.setblocking(False)
    found: Visit | None = None
    while found is None:
        with suppress(BlockingIOError):
            request = request[client.send(request) :] if request else request
        found = visitor.receive()
    client.settimeout(10)
    return found


def test_a_request_comes_whole(pair: tuple[socket.socket, Visitor]) -> None:
    client, visitor = pair
    head = (
        b"POST /sdcpp/v1/img_gen?a=b HTTP/1.1\r\nContent-Type: text/x\r\nX-QM-Request-Id: q-1\r\n"
    )
    body = b"z" * _LARGE

    visit = received(client, visitor, head + b"content-length: %d\r\n\r\n" % _LARGE + body)

    assert (visit.method, visit.target) == ("POST", "/sdcpp/v1/img_gen?a=b")
    assert (visit.content_type, visit.request, visit.length) == ("text/x", "q-1", _LARGE)
    assert visit.body.read() == body
    visit.body.close()
    assert not visitor.is_gone()
    client.close()
    assert visitor.is_gone()


def test_a_request_comes_in_pieces(pair: tuple[socket.socket, Visitor]) -> None:
    client, visitor = pair
    for piece in (b"GET / HT", b"TP/1.1\r\n", b"Content-Length: 2\r\n\r", b"\n", b"h"):
        client.sendall(piece)
        assert visitor.receive() is None
    client.sendall(b"i")

    visit = visitor.receive()

    assert visit is not None
    assert visit.body.read() == b"hi"
    visit.body.close()


@pytest.mark.parametrize(
    "request_", [b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"x" * 70_000]
)
def test_what_is_no_request_is_turned_away(
    pair: tuple[socket.socket, Visitor], request_: bytes
) -> None:
    client, visitor = pair
    client.sendall(request_)

    with pytest.raises(GoneError):
        assert visitor.receive()


def test_who_leaves_in_the_midst_of_it_is_noticed(pair: tuple[socket.socket, Visitor]) -> None:
    client, visitor = pair
    client.sendall(b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhi")
    assert visitor.receive() is None
    client.close()

    with pytest.raises(GoneError):
        visitor.receive()


def test_an_answer_goes_out_as_it_is_taken(pair: tuple[socket.socket, Visitor]) -> None:
    client, visitor = pair
    body = b"y" * _LARGE
    visitor.answer(202, "", body)
    assert not visitor.go_on()  # more than a socket's buffer holds

    got = b""
    while len(got) < _LARGE or not visitor.go_on():
        visitor.go_on()
        got += client.recv(1024 * 1024)

    head, _, sent = got.partition(b"\r\n\r\n")
    while len(sent) < _LARGE:
        sent += client.recv(1024 * 1024)
    assert head.startswith(b"HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\n")
    assert sent == body


def test_when_to_try_again_is_told_in_whole_seconds(pair: tuple[socket.socket, Visitor]) -> None:
    client, visitor = pair
    visitor.answer(503, "", b"{}", retry_after=Seconds(1.5))

    assert visitor.go_on()
    assert b"\r\nRetry-After: 2\r\n" in client.recv(1024)


def test_an_answer_to_nobody_is_done_with(pair: tuple[socket.socket, Visitor]) -> None:
    client, visitor = pair
    client.close()
    visitor.answer(200, "text/x", b"hi")

    assert visitor.go_on()


def test_a_door_takes_the_place_of_a_former_one_and_is_closed_to_others(places: Path) -> None:
    path = places / "jobs.sock"
    former = open_door(path)
    with closing(former), closing(open_door(path)) as door:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            visitor = until(lambda: let_in(door))
            assert visitor is not None
            visitor.close()
        assert let_in(door) is None


def test_a_door_that_cannot_be_made_says_so(places: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        open_door(places / "nowhere" / "jobs.sock")


def test_others_have_their_turn_in_the_midst_of_what_one_says_or_is_told(
    pair: tuple[socket.socket, Visitor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_door, "_CHUNK", 1000)
    monkeypatch.setattr(job_door, "_AT_A_TIME", 2)
    client, visitor = pair
    client.sendall(b"POST / HTTP/1.1\r\ncontent-length: 5000\r\n\r\n" + b"z" * 5000)

    assert [visitor.receive() for _ in range(2)] == [None, None]
    visit = visitor.receive()
    assert visit is not None
    assert visit.length == 5000
    visit.body.close()

    visitor.answer(200, "", b"z" * 3000)
    assert [visitor.go_on(), visitor.go_on()] == [False, True]


def test_a_process_without_descriptors_lets_nobody_in_and_says_so(door: socket.socket) -> None:
    assert let_in(door) is None
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(door.getsockname())
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
        try:
            with pytest.raises(OSError, match="Too many open files"):
                let_in(door)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

        visitor = let_in(door)
        assert visitor is not None
        visitor.close()
