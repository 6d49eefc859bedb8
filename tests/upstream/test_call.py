"""Requests to a server that answers as a test says, looked at only when polled."""

import io
import select
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from qmsup.upstream.call import Answered, Call, Unanswered, Wanted

_LARGE = 3 * 1024 * 1024


def whole(conn: socket.socket) -> bytes:
    """A request: its head, and as much body as that says."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += conn.recv(65536)
    head, _, body = received.partition(b"\r\n\r\n")
    length = next(
        (int(x.split(b":")[1]) for x in head.split(b"\r\n") if x.startswith(b"Content-Length")), 0
    )
    while len(body) < length:
        body += conn.recv(65536)
    return head + b"\r\n\r\n" + body


@contextmanager
def serving(
    answer: Callable[[socket.socket], object], host: str = "127.0.0.1"
) -> Iterator[tuple[str, list[bytes]]]:
    """`host:port` of a server for one connection, and what it was sent."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    asked: list[bytes] = []
    with socket.create_server((host, 0), family=family) as server:

        def serve() -> None:
            conn, _ = server.accept()
            with conn:
                asked.append(whole(conn))
                answer(conn)

        thread = threading.Thread(target=serve)
        thread.start()
        port = server.getsockname()[1]
        yield f"[{host}]:{port}" if ":" in host else f"{host}:{port}", asked
        thread.join(10)


def says(text: bytes) -> Callable[[socket.socket], object]:
    return lambda conn: conn.sendall(text)


def outcome(call: Call) -> Answered | Unanswered:
    with closing(call):
        result = call.look()
        while result is None:
            poll = select.poll()
            poll.register(call.fileno(), call.events)
            assert poll.poll(10_000), "no answer"
            result = call.look()
    return result


def test_a_question_is_asked_and_its_answer_read() -> None:
    ok = b"HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: 2\r\n\r\nhi"
    with serving(says(ok)) as (where, asked):
        got = outcome(Call(Wanted(upstream=where, method="GET", target="/a?b=c")))

    assert got == Answered(status=200, body=b"hi", content_type="text/x")
    lines = asked[0].decode().split("\r\n")
    assert lines[0] == "GET /a?b=c HTTP/1.1"
    assert f"Host: {where}" in lines
    assert "Connection: close" in lines
    assert not any(line.startswith("Content-") for line in lines)


@pytest.mark.parametrize("size", [0, 5, _LARGE])
@pytest.mark.parametrize("in_file", [False, True])
def test_a_body_is_sent_whole(size: int, in_file: bool) -> None:
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    with (
        tempfile.TemporaryFile() as file,
        serving(says(b"HTTP/1.1 202 Accepted\r\n\r\n{}")) as (where, asked),
    ):
        file.write(body)
        file.seek(0)
        wanted = Wanted(
            upstream=where,
            method="POST",
            target="/",
            body=file if in_file else body,
            length=size,
            content_type="application/json",
        )
        assert outcome(Call(wanted)) == Answered(status=202, body=b"{}")
    head, _, sent = asked[0].partition(b"\r\n\r\n")
    assert sent == body
    assert b"Content-Length: %d" % size in head
    assert b"Content-Type: application/json" in head


def test_a_large_answer_and_one_in_chunks_come_whole() -> None:
    large = b"y" * _LARGE
    with serving(says(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % _LARGE + large)) as (w, _):
        got = outcome(Call(Wanted(upstream=w, method="GET", target="/")))
        assert isinstance(got, Answered)
        assert got.body == large
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
    with serving(says(chunked)) as (where, _):
        assert outcome(Call(Wanted(upstream=where, method="GET", target="/"))) == Answered(
            status=200, body=b"abc"
        )


def test_a_server_that_does_not_close_is_not_waited_for() -> None:
    held: list[socket.socket] = []

    def answer(conn: socket.socket) -> None:
        held.append(conn.dup())
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")

    with serving(answer) as (where, _):
        assert outcome(Call(Wanted(upstream=where, method="GET", target="/"))) == Answered(
            status=200, body=b"hi"
        )
    held[0].close()


def test_a_server_that_wants_no_more_of_a_body_is_heard_all_the_same() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            conn, _ = server.accept()
            conn.recv(1000)
            conn.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
            conn.shutdown(socket.SHUT_WR)
            while conn.recv(65536):
                pass
            conn.close()

        thread = threading.Thread(target=serve)
        thread.start()
        body = io.BytesIO(b"z" * _LARGE)
        where = f"127.0.0.1:{server.getsockname()[1]}"
        got = outcome(
            Call(Wanted(upstream=where, method="POST", target="/", body=body, length=_LARGE))
        )
        thread.join(10)
    assert isinstance(got, Answered)
    assert got.status == 413


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi",
        b"what?\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX",
    ],
)
def test_half_an_answer_is_none(text: bytes) -> None:
    with serving(says(text)) as (where, _):
        got = outcome(Call(Wanted(upstream=where, method="GET", target="/")))

    assert isinstance(got, Unanswered)
    assert where in got.because


def test_nobody_there_is_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        where = f"localhost:{server.getsockname()[1]}"
    got = outcome(Call(Wanted(upstream=where, method="GET", target="/")))

    assert isinstance(got, Unanswered)
    assert "refused" in got.because


def test_a_server_on_ipv6_is_asked_there() -> None:
    with serving(says(b"HTTP/1.1 204 No Content\r\n\r\n"), host="::1") as (where, _):
        assert outcome(Call(Wanted(upstream=where, method="GET", target="/"))) == Answered(
            status=204, body=b""
        )
