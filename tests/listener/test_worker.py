import inspect
import json
import signal
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import gunicorn as library
import psutil
import pytest
from gunicorn.config import Config
from gunicorn.glogging import Logger
from gunicorn.workers import gthread

from qmsup import places as our_places
from qmsup.listener.gunicorn_parts import gunicorn_moved
from qmsup.listener.worker import RelayWorker
from qmsup.wire import controlling
from qmsup.wire.controlling import Reply
from qmsup.wire.listening import Ask, Done, Hello, Leave, Loading
from tests.support.children import is_alive
from tests.support.granting import GrantingScheduler, grant, granting_scheduler
from tests.support.gunicorns import Gunicorn, gunicorn, post
from tests.support.relaying import ending_context, read_all, read_until, wait_until
from tests.support.upstreams import SSE_HEAD, chunked, in_two_parts, plain, saying, upstream

Both = tuple[Gunicorn, GrantingScheduler]
ASK = {"model": "m", "messages": []}
STREAM = {**ASK, "stream": True}


@pytest.fixture(params=["in the loop", "in the pool"])
def both(places: Path, request: pytest.FixtureRequest) -> Iterator[Both]:
    """Small requests are judged in the loop where the fast parser is installed, else in the pool: both must do."""
    parser = "auto" if request.param == "in the loop" else "python"
    our_places.runtime_dir().mkdir(parents=True)
    with (
        ending_context(),
        granting_scheduler(our_places.scheduler_endpoint()) as scheduler,
        gunicorn(places / "log", http_parser=parser, send_loading_state=True) as running,
    ):
        scheduler.hears(Hello)
        yield running, scheduler


# ---- what we lean on


def test_gunicorn_is_the_version_the_worker_was_written_for() -> None:
    """When this fails: read the changes of gunicorn/workers/gthread.py, then the worker, then these tests."""
    assert library.__version__.startswith("27.0.")
    assert gunicorn_moved() == []


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (
            "run",
            ["self.wait_for_and_dispatch_events(", "self.nr_conns", "self.murder_keepalived()"],
        ),
        ("run", ["if not self.is_parent_alive():", "while self.alive:"]),
        ("handle", ["self._keepalive_after(conn, self.handle_request(req, conn))", "conn.init()"]),
        ("handle_request", ["self.wsgi(environ, resp.start_response)"]),
        ("finish_request", ["conn.parser.unreader.buf.getvalue()"]),
        ("enqueue_req", ["self.method_queue.defer(self.finish_request, conn, fut)"]),
        ("accept", ["self.enqueue_req(conn)", "self.nr_conns += 1"]),
        ("wait_for_and_dispatch_events", ["self.poller.select(timeout)"]),
    ],
)
def test_the_methods_of_gunicorn_do_what_the_worker_expects(method: str, words: list[str]) -> None:
    source = inspect.getsource(getattr(gthread.ThreadWorker, method))

    assert [word for word in words if word not in source] == []


def test_tls_is_refused_in_words() -> None:
    config = Config()
    config.set("certfile", "x.pem")
    config.set("ssl_version", ssl.PROTOCOL_TLS_SERVER)

    with pytest.raises(RuntimeError, match="end TLS in front"):
        RelayWorker.check_config(config, Logger(config))


# ---- requests


def test_relayed_and_ordinary_requests_share_a_connection(both: Both) -> None:
    running, scheduler = both
    scheduler.on_question = lambda q: Reply(v=controlling.VERSION, id=q.id, ok=True, body={})
    with upstream(saying(plain(b"hello"))) as child, running.connect() as client:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]

        for _ in range(3):
            client.sendall(post(ASK))
            assert read_until(client, b"hello").startswith(b"HTTP/1.1 200 OK")
            client.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            assert b'"ok"' in read_until(client, b"}")

        scheduler.hears(Done, count=3)
        assert len(child.requests) == 3


def test_a_body_in_chunks_is_relayed_with_its_length(both: Both) -> None:
    running, scheduler = both
    body = json.dumps(ASK).encode()
    with upstream(saying(plain(b"hello"))) as child, running.connect() as client:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]

        client.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for byte in body:
            client.sendall(chunked(bytes((byte,)), ended=False))
        client.sendall(b"0\r\n\r\n")

        read_until(client, b"hello")
        head, _, sent = child.requests[0].partition(b"\r\n\r\n")
        assert sent == body
        assert f"Content-Length: {len(body)}".encode() in head


def test_a_large_body_goes_through(both: Both) -> None:
    running, scheduler = both
    wanted = {**ASK, "filler": "x" * 5_000_000}
    with upstream(saying(plain(b"hello"))) as child, running.connect() as client:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]

        client.sendall(post(wanted))

        read_until(client, b"hello")
        assert json.loads(child.requests[0].partition(b"\r\n\r\n")[2]) == wanted


def test_a_request_sent_behind_another_is_served_after_it(both: Both) -> None:
    running, scheduler = both
    go_on = threading.Event()
    script = in_two_parts(SSE_HEAD + chunked(b"data: 1\n\n", ended=False), b"0\r\n\r\n", go_on)
    with upstream(script) as child, running.connect() as client:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]

        client.sendall(post(STREAM) + b"GET /version HTTP/1.1\r\nHost: a\r\n\r\n")
        read_until(client, b"data: 1")
        go_on.set()

        said = read_until(client, b"}")
        assert said.index(b"0\r\n\r\n") < said.index(b"HTTP/1.1 200 OK")


def test_a_client_that_asks_to_close_is_closed_and_delays_nobody(both: Both) -> None:
    running, scheduler = both
    with upstream(saying(plain(b"hello"))) as child:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]
        stubborn = running.connect()
        stubborn.sendall(post(ASK, headers="Connection: close\r\n"))
        said = read_until(stubborn, b"hello")

        with running.connect() as other:
            other.sendall(post(ASK))
            read_until(other, b"hello")
            # The stubborn one is at its end and still open; the other was served meanwhile.
            assert stubborn.recv(100) == b""

        assert b"Connection: close" in said
        stubborn.close()


def test_an_old_client_gets_the_stream_until_the_close(both: Both) -> None:
    running, scheduler = both
    with upstream(saying(SSE_HEAD + chunked(b"data: 1\n\n"))) as child:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]
        client = running.connect()

        client.sendall(post(STREAM).replace(b"HTTP/1.1", b"HTTP/1.0", 1))

        said = read_all(client)
        assert said.endswith(b"\r\n\r\ndata: 1\n\n")


def test_a_waiting_client_reads_comments_and_may_leave(both: Both) -> None:
    running, scheduler = both
    with running.connect() as client:
        client.sendall(post(STREAM))
        asked = scheduler.hears(Ask)
        scheduler.say(Loading(request=asked.request))
        read_until(client, b": qm-status: loading\n\n")

    assert scheduler.hears(Leave).request == asked.request


def test_who_asks_without_a_conversation_is_told_apart_by_address_and_key(both: Both) -> None:
    running, scheduler = both
    clients = []
    for count, headers in enumerate(("", "", "X-Api-Key: k\r\n", "X-Session-ID: s\r\n"), 1):
        with running.connect() as client:
            client.sendall(post(ASK, headers=headers))
            asked = scheduler.hears(Ask, count=count)
            clients.append((asked.client, asked.conversation))

    assert clients[0] == clients[1] != clients[2]
    assert all(len(client) == 16 for client, _ in clients[:3])
    assert clients[3] == ("", "s")


def test_what_the_app_refuses_never_reaches_the_scheduler(both: Both) -> None:
    running, scheduler = both
    with running.connect() as client:
        client.sendall(post({"model": "nope"}))
        assert read_until(client, b"}}").startswith(b"HTTP/1.1 404")
        client.sendall(post({"model": "nope"}).replace(b'"nope"', b'"nope" '[:6]))
        assert read_until(client, b"}}")

    assert "Ask" not in scheduler.kinds()


def test_foreign_bytes_are_a_400_and_the_worker_lives(both: Both) -> None:
    running, _ = both
    with running.connect() as client:
        client.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
        assert read_all(client).startswith(b"HTTP/1.1 400")
    with running.connect() as client:
        client.sendall(b"GET /version HTTP/1.1\r\nHost: a\r\n\r\n")
        assert read_until(client, b"}").startswith(b"HTTP/1.1 200")


def test_requests_that_are_slow_to_come_hold_up_nobody(both: Both) -> None:
    running, scheduler = both
    scheduler.on_question = lambda q: Reply(v=controlling.VERSION, id=q.id, ok=True, body={})
    line = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n"
    beginnings = (
        line[:9],
        line,
        line + b"Content-Length: 99\r\n\r\n{",
        line + b"Content-Length: 999999\r\n\r\n{",
        line + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
    )
    with ExitStack() as slow:
        for beginning in beginnings * 36:  # more of each than there are threads
            slow.enter_context(running.connect()).sendall(beginning)
        with running.connect() as client:
            client.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            assert b'"ok"' in read_until(client, b"}")


def test_a_request_that_comes_in_pieces_is_served(both: Both) -> None:
    running, scheduler = both
    with upstream(saying(plain(b"hello"))) as child, running.connect() as client:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]
        requests = post(ASK) + post(ASK)

        for byte in requests[: len(requests) - 20]:
            client.sendall(bytes((byte,)))
        read_until(client, b"hello")
        client.sendall(requests[-20:])

        read_until(client, b"hello")
        assert len(child.requests) == 2


def test_half_a_request_before_the_end_is_none(both: Both) -> None:
    running, scheduler = both
    with running.connect() as client:
        client.sendall(post(ASK)[:-1])
        client.shutdown(socket.SHUT_WR)
        read_all(client)

    assert "Ask" not in scheduler.kinds()


# ---- its end


def test_a_worker_that_stops_lets_streams_end_and_takes_no_new_clients(both: Both) -> None:
    running, scheduler = both
    go_on = threading.Event()
    script = in_two_parts(
        SSE_HEAD + chunked(b"data: 1\n\n", ended=False), chunked(b"data: 2\n\n"), go_on
    )
    with upstream(script) as child:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]
        client = running.connect()
        client.sendall(post(STREAM))
        read_until(client, b"data: 1")

        running.process.send_signal(signal.SIGTERM)
        running.logs("Handling signal: term")
        wait_until(lambda: _refuses(running))
        go_on.set()

        assert read_all(client).endswith(b"data: 2\n\n\r\n0\r\n\r\n")
        assert running.process.wait(10) == 0


def test_a_worker_that_stops_serves_what_was_on_its_way(both: Both) -> None:
    """Half of a request, and one more on a connection whose answer had said that it goes on."""
    running, scheduler = both
    go_on = threading.Event()
    script = in_two_parts(
        SSE_HEAD + chunked(b"data: 1\n\n", ended=False), chunked(b"data: 2\n\n"), go_on
    )
    with (
        upstream(script) as child,
        running.connect() as halfway,
        running.connect() as client,
        running.connect() as silent,
    ):
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]
        halfway.sendall(post(STREAM)[:-5])
        client.sendall(post(STREAM))
        read_until(client, b"data: 1")

        running.process.send_signal(signal.SIGTERM)
        assert silent.recv(1) == b"", "the last hour is over"
        go_on.set()
        halfway.sendall(post(STREAM)[-5:])
        read_until(client, b"0\r\n\r\n")
        client.sendall(b"GET /version HTTP/1.1\r\nHost: a\r\n\r\n")

        assert read_until(client, b'"version"').startswith(b"HTTP/1.1 200")
        assert b"data: 2" in read_all(halfway)
        read_all(client)
        assert running.process.wait(10) == 0


def test_a_worker_whose_gunicorn_was_killed_leaves_its_port_to_the_next_one_and_its_streams_go_on(
    both: Both,
) -> None:
    running, scheduler = both
    go_on = threading.Event()
    script = in_two_parts(
        SSE_HEAD + chunked(b"data: 1\n\n", ended=False), chunked(b"data: 2\n\n"), go_on
    )
    with upstream(script) as child:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]
        client = running.connect()
        client.sendall(post(STREAM))
        read_until(client, b"data: 1")
        (worker,) = psutil.Process(running.process.pid).children()

        running.process.kill()
        wait_until(lambda: _refuses(running))
        with socket.create_server(("127.0.0.1", running.port)):
            pass
        go_on.set()

        assert read_all(client).endswith(b"data: 2\n\n\r\n0\r\n\r\n")
    wait_until(lambda: not is_alive(worker.pid))


def test_a_worker_with_few_descriptors_says_what_to_do(places: Path) -> None:
    with gunicorn(places / "log", descriptors=600) as running:
        running.logs("worker.few_descriptors")
        assert "LimitNOFILE" in running.log()


def _refuses(running: Gunicorn) -> bool:
    try:
        running.connect().close()
    except ConnectionRefusedError:
        return True
    return False
