import json
import socket
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from qmsup.ids import RequestId
from qmsup.listener.relay.engine import RelayOptions
from qmsup.wire.listening import (
    Accepted,
    Ask,
    CutOff,
    Declined,
    Done,
    Leave,
    Loading,
    Moved,
    Refused,
)
from tests.support.granting import PATIENCE, GrantingScheduler, grant
from tests.support.relaying import (
    Relaying,
    order,
    read_all,
    read_until,
    relaying_with_scheduler,
)
from tests.support.servers import free_port
from tests.support.upstreams import SSE_HEAD, Upstream, chunked, plain, saying, upstream

Both = tuple[Relaying, GrantingScheduler]


@pytest.fixture
def both(places: Path) -> Iterator[Both]:
    options = RelayOptions(send_loading_state=True, loading_remarks=False, access_log=False)
    with relaying_with_scheduler(options) as pair:
        yield pair


def test_a_request_reaches_the_child_and_its_answer_the_client(both: Both) -> None:
    engine, scheduler = both
    with upstream(saying(plain(b"hello"))) as child:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]

        with engine.hold(order(b"abc")) as client:
            said = read_until(client, b"hello")

        assert said.startswith(b"HTTP/1.1 200 OK\r\n")
        assert scheduler.hears(Done) == Done(
            request=scheduler.hears(Ask).request, outcome="finished", served=True
        )
        head, _, body = child.requests[0].partition(b"\r\n\r\n")
        assert f"\r\nHost: {child.where}".encode() in head
        assert body == b"abc"
        engine.until(lambda: engine.ends == [True])


def test_a_client_that_closes_gets_everything_first(both: Both) -> None:
    engine, scheduler = both
    with upstream(saying(plain(b"x" * 300_000))) as child:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]

        said = read_all(engine.hold(order(), keeps_alive=False))

        assert said.endswith(b"x" * 300_000)
        engine.until(lambda: engine.ends == [False])


@pytest.mark.parametrize("in_file", [False, True], ids=["in memory", "in a file"])
def test_a_large_body_is_sent_in_parts_and_a_large_answer_read_in_parts(
    both: Both, *, in_file: bool
) -> None:
    engine, scheduler = both
    body = bytes(range(256)) * 40_000

    with upstream(lambda to, request: to.sendall(plain(request[-len(body) :]))) as child:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]
        file = tempfile.TemporaryFile()  # noqa: SIM115 - the engine closes it
        file.write(body)
        wanted = order(file, length=len(body)) if in_file else order(body)

        said = read_all(engine.hold(wanted, keeps_alive=False))

        assert said.endswith(b"\r\n\r\n" + body)
        assert file.closed == in_file
        file.close()


def test_a_slow_client_stops_the_reads_from_its_child(both: Both) -> None:
    engine, scheduler = both
    sent = 0
    size = 64 << 20

    def pour(to: socket.socket, _request: bytes) -> None:
        nonlocal sent
        to.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        to.settimeout(0.3)
        try:
            while sent < size:
                sent += to.send(b"x" * 65536)
        except TimeoutError:
            stuck.set()
        to.settimeout(PATIENCE)
        to.sendall(b"x" * (size - sent))

    stuck = threading.Event()
    with upstream(pour) as child:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]

        client = engine.hold(order(), keeps_alive=False, send_buffer=65536)
        assert stuck.wait(PATIENCE)
        before = engine.turns
        assert sent < size // 2
        said = read_all(client)

        assert len(said.partition(b"\r\n\r\n")[2]) == size
        assert before < 5_000, "a paused upstream must not turn the loop"


# ---- clients that leave


def test_who_leaves_while_waiting_is_out_of_the_line(both: Both) -> None:
    engine, scheduler = both
    client = engine.hold(order())
    asked = scheduler.hears(Ask)

    client.close()

    assert scheduler.hears(Leave).request == asked.request
    engine.until(lambda: engine.engine.held == 0)
    engine.until(lambda: engine.ends == [False])
    scheduler.say(grant(asked, "127.0.0.1:1"))
    assert scheduler.hears(Declined).request == asked.request


def test_a_half_close_is_seen_even_behind_unread_bytes(both: Both) -> None:
    engine, scheduler = both
    with engine.hold(order()) as client:
        scheduler.hears(Ask)

        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        client.shutdown(socket.SHUT_WR)

        scheduler.hears(Leave)


@pytest.mark.parametrize("answer", [b"", SSE_HEAD + b"9\r\ndata: 1\n\n\r\n"])
def test_who_leaves_a_stalled_child_closes_it(both: Both, answer: bytes) -> None:
    engine, scheduler = both

    def stall(to: socket.socket, _request: bytes) -> None:
        to.sendall(answer)
        child.wait_for_client_to_leave(to)

    with upstream(stall) as child:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]
        client = engine.hold(order())
        scheduler.hears(Accepted)
        if answer:
            read_until(client, b"data: 1")

        client.close()

        assert child.gone.wait(PATIENCE)
        done = scheduler.hears(Done)
        assert done.outcome == "abandoned"


def test_who_leaves_while_it_is_written_to_closes_its_child(both: Both) -> None:
    engine, scheduler = both

    def pour(to: socket.socket, _request: bytes) -> None:
        to.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n")
        try:
            while True:
                to.sendall(b"x" * 65536)
        except OSError:
            child.gone.set()

    with upstream(pour) as child:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]
        with engine.hold(order()) as client:
            read_until(client, b"xxx")

        assert child.gone.wait(PATIENCE)
        assert scheduler.hears(Done).outcome == "abandoned"


# ---- children that fail


def test_a_refused_connection_is_tried_once_more_asked_for_anew_and_then_a_502(both: Both) -> None:
    engine, scheduler = both
    where = f"127.0.0.1:{free_port()}"
    scheduler.on_ask = lambda ask: [grant(ask, where)]

    with engine.hold(order(b"abc")) as client:
        said = read_until(client, b"}}")

    assert scheduler.hears(Ask, count=2).model == "m"

    assert said.startswith(b"HTTP/1.1 502")
    assert b"refuses connections" in said
    assert b"model m" in said
    done = scheduler.hears(Done, count=2)
    assert (done.outcome, done.served) == ("failed", False)


def test_a_grant_for_a_child_that_is_gone_is_asked_for_anew(both: Both) -> None:
    engine, scheduler = both
    with upstream(saying(plain(b"again"))) as child:
        places = [f"127.0.0.1:{free_port()}", child.where]
        scheduler.on_ask = lambda ask: [grant(ask, places.pop(0))]

        with engine.hold(order(b"abc")) as client:
            assert read_until(client, b"again").startswith(b"HTTP/1.1 200")

        assert child.requests[0].endswith(b"abc")


def test_a_child_that_is_back_at_the_second_try_serves(both: Both) -> None:
    engine, scheduler = both
    port = free_port()
    scheduler.on_ask = lambda ask: [grant(ask, f"127.0.0.1:{port}")]

    with engine.hold(order(b"abc")) as client:
        scheduler.hears(Accepted)
        with socket.create_server(("127.0.0.1", port)) as server:
            server.settimeout(0.5)
            try:
                connection, _ = server.accept()
            except TimeoutError:
                pytest.skip("this machine was too slow to be there at the second try")
            with connection:
                connection.sendall(plain(b"late"))
                read_until(client, b"late")


@pytest.mark.parametrize("where", ["nonsense", "127.0.0.1:port", "no.such.host.invalid:1"])
def test_an_address_that_is_none_is_a_502(both: Both, where: str) -> None:
    engine, scheduler = both
    scheduler.on_ask = lambda ask: [grant(ask, where)]

    with engine.hold(order()) as client:
        assert read_until(client, b"}}").startswith(b"HTTP/1.1 502")


def test_a_child_that_dies_without_a_word_is_a_502(both: Both) -> None:
    engine, scheduler = both
    with upstream(saying(b"")) as child:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]

        with engine.hold(order()) as client:
            assert read_until(client, b"}}").startswith(b"HTTP/1.1 502")


def test_a_stream_whose_child_dies_is_cut_where_the_client_sees_it(both: Both) -> None:
    engine, scheduler = both
    with upstream(saying(SSE_HEAD + chunked(b"data: 1\n\n", ended=False))) as child:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]

        said = read_all(engine.hold(order()))

        assert b"data: 1\n\n" in said
        assert said.count(b'data: {"error"') == 1
        assert not said.endswith(b"0\r\n\r\n")
        done = scheduler.hears(Done)
        assert (done.outcome, done.served) == ("failed", True)


def test_an_answer_that_only_a_close_would_end_is_reset(both: Both) -> None:
    engine, scheduler = both
    with upstream(
        saying(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
    ) as child:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]

        client = engine.hold(order(), is_http11=False)
        with pytest.raises(ConnectionResetError):
            read_all(client)

        engine.until(lambda: engine.ends == [False])


def test_a_child_that_answers_before_it_has_read_everything_is_heard(both: Both) -> None:
    engine, scheduler = both
    body = b"x" * (32 << 20)

    with socket.create_server(("127.0.0.1", 0)) as server:
        where = f"127.0.0.1:{server.getsockname()[1]}"
        scheduler.on_ask = lambda ask: [grant(ask, where)]
        client = engine.hold(order(body))
        connection, _ = server.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(plain(b"{}", status=b"413 Too Large"))
            said = read_until(client, b"{}")
        client.close()

    assert said.startswith(b"HTTP/1.1 413")


# ---- what the scheduler says


def test_a_refusal_before_any_word_is_a_plain_status(both: Both) -> None:
    engine, scheduler = both
    scheduler.on_ask = lambda ask: [
        Refused(request=ask.request, code="line_full", message="full", retry_after_s=2.5)
    ]

    with engine.hold(order(streaming=True)) as client:
        said = read_until(client, b"}}")

    assert said.startswith(b"HTTP/1.1 429")
    assert b"Retry-After: 3" in said
    engine.until(lambda: engine.ends == [True])


def test_a_code_of_a_newer_scheduler_is_a_refusal_all_the_same(both: Both) -> None:
    engine, scheduler = both
    scheduler.on_ask = lambda ask: [Refused(request=ask.request, code="odd", message="newer")]

    with engine.hold(order()) as client:
        assert read_until(client, b"}}").startswith(b"HTTP/1.1 503")


@pytest.mark.parametrize("is_one_of_many", [False, True])
def test_a_waiting_stream_is_told_its_place_and_then_gets_its_answer(
    both: Both, *, is_one_of_many: bool
) -> None:
    engine, scheduler = both
    with upstream(saying(SSE_HEAD + chunked(b"data: 1\n\n"))) as child:
        client = engine.hold(order(streaming=True), keeps_alive=False)
        asked = scheduler.hears(Ask)

        scheduler.say(Moved(places=((asked.request, 2), (RequestId("of another"), 1))))
        first = read_until(client, b"waiting 2")
        promoted = ((asked.request, 0), (RequestId("of another"), 0))
        loading = Moved(places=promoted) if is_one_of_many else Loading(request=asked.request)
        scheduler.say(Moved(places=((asked.request, 1),)), loading)
        second = read_until(client, b"loading")
        scheduler.say(grant(asked, child.where, was_ready=False))
        rest = read_all(client)

    assert first.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream")
    assert b"waiting 1" in second
    assert b"HTTP/1.1" not in rest
    assert rest.endswith(b"data: 1\n\n\r\n0\r\n\r\n")
    assert scheduler.hears(Done).outcome == "finished"


@pytest.mark.parametrize("hears", [False, True])
def test_who_has_heard_something_gets_nothing_compressed(both: Both, *, hears: bool) -> None:
    engine, scheduler = both
    asked_of_child: list[bytes] = []

    def answer(to: socket.socket, request: bytes) -> None:
        asked_of_child.append(request)
        to.sendall(SSE_HEAD + chunked(b"data: 1\n\n"))

    with upstream(answer) as child:
        plain_order = order(streaming=True)
        head = plain_order.head + b"Accept-Encoding: gzip\r\n"
        client = engine.hold(replace(plain_order, head=head), keeps_alive=False)
        asked = scheduler.hears(Ask)
        if hears:
            scheduler.say(Loading(request=asked.request))
        scheduler.say(grant(asked, child.where))
        assert b"data: 1" in read_all(client)

    assert (b"Accept-Encoding" in asked_of_child[0]) is not hears


def test_a_waiting_request_that_streams_nothing_hears_nothing(both: Both) -> None:
    engine, scheduler = both
    with upstream(saying(plain(b"late"))) as child:
        client = engine.hold(order())
        asked = scheduler.hears(Ask)
        scheduler.say(Moved(places=((asked.request, 1),)), Loading(request=asked.request))
        scheduler.say(grant(asked, child.where, was_ready=False, waited_ms=1234))

        with client:
            said = read_until(client, b"late")

    assert said.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: application/json")
    assert b"X-QM-Model-Loaded: 1" in said
    assert b"X-QM-Wait-Ms: 1234" in said


def test_a_failed_load_behind_a_placeholder_is_one_error_event(both: Both) -> None:
    engine, scheduler = both
    client = engine.hold(order(streaming=True), keeps_alive=False)
    asked = scheduler.hears(Ask)
    scheduler.say(Loading(request=asked.request))
    read_until(client, b"loading")

    scheduler.say(Refused(request=asked.request, code="model_load_failed", message="exit code 1"))

    said = read_all(client)
    event = json.loads(said.partition(b"data: ")[2].partition(b"\n")[0])
    assert event["error"]["code"] == "model_load_failed"
    assert said.endswith(b"0\r\n\r\n")


def test_a_cut_closes_the_child_and_tells_the_client(both: Both) -> None:
    engine, scheduler = both

    def stall(to: socket.socket, _request: bytes) -> None:
        to.sendall(SSE_HEAD + chunked(b"data: 1\n\n", ended=False))
        child.wait_for_client_to_leave(to)

    with upstream(stall) as child:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]
        client = engine.hold(order())
        read_until(client, b"data: 1")

        scheduler.say(
            CutOff(request=scheduler.hears(Ask).request, code="model_unloaded", message="stopped")
        )

        assert child.gone.wait(PATIENCE)
        assert b"model_unloaded" in read_all(client)
        assert scheduler.hears(Done).outcome == "failed"


def test_who_is_cut_off_before_the_second_try_is_not_tried_again(both: Both) -> None:
    engine, scheduler = both
    with socket.create_server(("127.0.0.1", 0)) as closed:
        where = f"127.0.0.1:{closed.getsockname()[1]}"
    scheduler.on_ask = lambda ask: [
        grant(ask, where),
        CutOff(request=ask.request, code="model_unloaded", message="stopped"),
    ]

    with engine.hold(order(b"abc")) as client:
        assert b"model_unloaded" in read_until(client, b"}}")

    engine.until(lambda: not engine.engine._timers[1:])
    assert scheduler.hears(Done).outcome == "failed"


def test_hundreds_of_clients_wait_without_a_thread_each_and_all_are_served(both: Both) -> None:
    engine, scheduler = both
    threads = threading.active_count()
    clients = [engine.hold(order(streaming=True), keeps_alive=False) for _ in range(400)]
    scheduler.hears(Ask, count=400)
    assert threading.active_count() == threads

    def answer(child: Upstream) -> None:
        asks = [m for m in scheduler.heard if isinstance(m, Ask)]
        scheduler.say(*(grant(ask, child.where) for ask in asks))

    with upstream(saying(SSE_HEAD + chunked(b"data: 1\n\n"))) as child:
        answer(child)
        answers = [read_all(client) for client in clients]

    assert all(said.endswith(b"data: 1\n\n\r\n0\r\n\r\n") for said in answers)
    scheduler.hears(Done, count=400)
