import json
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from qmsup.upstream.probe import Answer, Found, Probe
from qmsup.upstream.readiness import ReadinessCheck

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
LOADING = b"HTTP/1.1 503 Service Unavailable\r\n\r\n"
_TOLD = {"total_slots": 3, "default_generation_settings": {"n_ctx": 2048}}
PROPS = b"HTTP/1.1 200 OK\r\n\r\n" + json.dumps(_TOLD).encode()


class Scripted:
    """A server that gives each connection the next answer, piece by piece, and keeps what it was asked."""

    def __init__(self, *answers: tuple[bytes, ...], host: str = "127.0.0.1") -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.server = socket.create_server((host, 0), family=family)
        self.port: int = self.server.getsockname()[1]
        self.asked: list[bytes] = []
        self.thread = threading.Thread(target=self._serve, args=(answers,))
        self.thread.start()

    def _serve(self, answers: tuple[tuple[bytes, ...], ...]) -> None:
        for pieces in answers:
            connection, _ = self.server.accept()
            with connection:
                self.asked.append(connection.recv(4096))
                for piece in pieces:
                    connection.sendall(piece)
                    time.sleep(0.005)  # so that the pieces arrive one by one


@contextmanager
def scripted(*answers: tuple[bytes, ...], host: str = "127.0.0.1") -> Iterator[Scripted]:
    server = Scripted(*answers, host=host)
    yield server
    server.thread.join()
    server.server.close()


def outcome(probe: Probe) -> Answer:
    """What it finds in the end; looked at only when polled."""
    with closing(probe):
        answer = probe.look()
        while answer is None:
            poll = select.poll()
            poll.register(probe.fileno(), probe.events)
            assert poll.poll(10_000), "no answer"
            answer = probe.look()
    return answer


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@pytest.mark.parametrize(
    ("pieces", "found", "words"),
    [
        ((OK,), Found.READY, "GET /health answered 200"),
        ((b"HT", b"TP/1.1 2", b"00 OK\r", b"\n"), Found.READY, "GET /health answered 200"),
        ((LOADING,), Found.LOADING, "GET /health answered 503"),
        ((b"HTTP/1.0 404 no\r\n\r\n",), Found.OTHER_STATUS, "GET /health answered 404"),
        ((b"SSH-2.0-x\r\n",), Found.OTHER_STATUS, "something answered that is not HTTP"),
        ((b"HTTP/1.1 what\r\n",), Found.OTHER_STATUS, "something answered that is not HTTP"),
        ((b"HTTP/1.1 20",), Found.REFUSED, "the connection was closed without an answer"),
        ((), Found.REFUSED, "the connection was closed without an answer"),
    ],
)
def test_the_status_line_says_it(pieces: tuple[bytes, ...], found: Found, words: str) -> None:
    with scripted(pieces) as server:
        answer = outcome(Probe("localhost", server.port, "/health"))

    assert answer == Answer(found=found, words=words)
    assert server.asked[0].startswith(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"Connection: close" in server.asked[0]


def test_nothing_listens_yet() -> None:
    answer = outcome(Probe("127.0.0.1", free_port(), "/health"))

    assert answer == Answer(found=Found.REFUSED, words="Connection refused")


def test_a_body_is_read_whole_where_it_is_wanted() -> None:
    with scripted((PROPS[:30], PROPS[30:])) as server:
        answer = outcome(Probe("127.0.0.1", server.port, "/props", wants_body=True))

    assert json.loads(answer.body) == _TOLD


def test_a_line_without_end_is_not_read_for_ever() -> None:
    with scripted((b"x" * 1_100_000,)) as server:
        answer = outcome(Probe("127.0.0.1", server.port, "/health"))

    assert answer.found is Found.REFUSED


def test_an_accepted_connection_is_enough_for_tcp() -> None:
    with scripted((b"",)) as server:
        assert outcome(Probe("127.0.0.1", server.port)).found is Found.READY


def test_ipv6_works_too() -> None:
    with scripted((OK,), host="::1") as server:
        assert outcome(Probe("::1", server.port, "/health")).found is Found.READY


def test_one_that_never_answers_is_never_waited_for() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        closing(Probe("127.0.0.1", silent.getsockname()[1], "/health")) as probe,
    ):
        while probe.events != select.POLLIN:  # connecting may be done at once, or in a moment
            assert probe.look() is None
        assert probe.look() is None


def test_a_connection_that_takes_time_is_asked_for_again() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        with (
            socket.create_connection(("127.0.0.1", port)),
            closing(Probe("127.0.0.1", port)) as probe,
        ):
            assert probe.look() is None
            assert probe.events == select.POLLOUT
            assert probe.look() is None


def understood(check: ReadinessCheck) -> bool:
    probe = check.ask()
    assert probe is not None
    return check.understand(outcome(probe))


def test_slots_are_asked_with_the_same_question() -> None:
    with scripted((LOADING,), (PROPS,)) as server:
        check = ReadinessCheck("/health", "127.0.0.1", server.port, asks_slots=True)

        assert [understood(check), understood(check)] == [False, True]

    assert (check.total_slots, check.context) == (3, 2048)
    assert all(question.startswith(b"GET /props ") for question in server.asked)


def test_where_slots_are_not_told_the_configured_path_is_asked() -> None:
    with scripted((b"HTTP/1.1 401 no\r\n\r\n",), (OK,)) as server:
        check = ReadinessCheck("/health", "127.0.0.1", server.port, asks_slots=True)

        assert [understood(check), understood(check)] == [False, True]

    assert check.total_slots is None
    assert server.asked[1].startswith(b"GET /health ")


def test_a_path_of_the_operator_is_asked_and_nothing_else() -> None:
    with scripted((OK,)) as server:
        check = ReadinessCheck("/v1/models", "127.0.0.1", server.port, asks_slots=True)

        assert understood(check)

    assert server.asked[0].startswith(b"GET /v1/models ")


@pytest.mark.parametrize(
    "body",
    [
        b"no json",
        b"[" * 100_000,
        b"[]",
        b'{"total_slots": "4"}',
        b'{"total_slots": 0, "default_generation_settings": {"n_ctx": "x"}}',
        b'{"default_generation_settings": 5}',
    ],
)
def test_slots_that_make_no_sense_are_no_slots(body: bytes) -> None:
    check = ReadinessCheck("/health", "127.0.0.1", 1, asks_slots=True)

    assert check.understand(Answer(found=Found.READY, words="", body=body))
    assert (check.total_slots, check.context) == (None, None)


def test_none_asks_nothing_and_tcp_only_connects() -> None:
    assert ReadinessCheck("none", "127.0.0.1", 1).ask() is None
    with scripted((b"",)) as server:
        assert understood(ReadinessCheck("tcp", "127.0.0.1", server.port))


def test_another_status_may_say_ready_and_200_does_not_then() -> None:
    refused = b"HTTP/1.1 401 Unauthorized\r\n\r\n"
    with scripted((LOADING,), (OK,), (refused,)) as server:
        check = ReadinessCheck("status:401 /v1/models", "127.0.0.1", server.port, asks_slots=True)

        assert check.asks_http
        assert [understood(check) for _ in range(3)] == [False, False, True]

    assert all(question.startswith(b"GET /v1/models ") for question in server.asked)


def test_503_may_say_ready_where_that_was_asked_for() -> None:
    with scripted((LOADING,)) as server:
        assert understood(ReadinessCheck("status:503 /", "127.0.0.1", server.port))
