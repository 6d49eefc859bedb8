"""What is told of requests at their end, over real sockets."""

import socket
from collections.abc import Iterator

import pytest

from qmsup.errors import Code
from qmsup.wire import codec, listening
from qmsup.wire.listening import Finished, Refused
from tests.support.granting import GrantingScheduler, grant
from tests.support.relaying import (
    Relaying,
    order,
    read_all,
    read_until,
    relaying_with_scheduler,
)

USAGE = b'{"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}'
ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(USAGE)
    + USAGE
)
Box = tuple[Relaying, GrantingScheduler]


@pytest.fixture
def box(places: object) -> Iterator[Box]:
    with relaying_with_scheduler() as both:
        yield both


def row_of(scheduler: GrantingScheduler, request: str) -> Finished:
    rows: list[Finished] = []

    def has_it(message: listening.Activity) -> bool:
        rows[:] = [r for r in codec.decode_requests(message.requests) if r.request == request]
        return bool(rows)

    scheduler.hears(listening.Activity, has_it)
    return rows[0]


def test_a_request_that_was_served_is_told_with_what_its_answer_said(box: Box) -> None:
    engine, scheduler = box
    with socket.create_server(("127.0.0.1", 0)) as upstream:
        where = f"127.0.0.1:{upstream.getsockname()[1]}"
        scheduler.on_ask = lambda ask: [grant(ask, where, waited_ms=12)]
        wanted = order(b"{}", streaming=True)
        client = engine.hold(wanted, keeps_alive=False)
        child, _ = upstream.accept()
        with child:
            read_until(child, b"{}")
            child.sendall(ANSWER)
        said = read_all(client)

    row = row_of(scheduler, wanted.request)
    assert (row.model, row.method, row.path) == ("m", "POST", "/v1/x")
    assert (row.status, row.outcome, row.bytes) == (200, "finished", len(said))
    assert (row.tokens_in, row.tokens_out) == (7, 2)
    assert (row.wait_ms, row.streaming, row.host, row.route) == (12, True, "local", "")
    assert row.ttft_ms is not None
    assert 0 <= row.ttft_ms <= row.ms


def test_a_client_that_left_while_it_waited_is_told_of_as_abandoned(box: Box) -> None:
    engine, scheduler = box
    wanted = order()
    client = engine.hold(wanted)
    scheduler.hears(listening.Ask)

    client.close()

    row = row_of(scheduler, wanted.request)
    assert (row.status, row.outcome, row.bytes) == (0, "abandoned", 0)
    assert (row.wait_ms, row.ttft_ms, row.tokens_in) == (None, None, None)


def test_a_refusal_is_told_of_with_its_status(box: Box) -> None:
    engine, scheduler = box
    scheduler.on_ask = lambda ask: [Refused(ask.request, Code.QUEUE_FULL, "too many")]
    wanted = order()

    with engine.hold(wanted) as client:
        read_until(client, b"too many")

        row = row_of(scheduler, wanted.request)
    assert (row.status, row.outcome) == (429, "failed")


def test_neither_query_nor_body_is_told(box: Box) -> None:
    engine, scheduler = box
    wanted = order(b'{"prompt": "private"}')
    engine.hold(wanted).close()

    row = row_of(scheduler, wanted.request)
    assert "secret" not in str(row)
    assert "private" not in str(row)
