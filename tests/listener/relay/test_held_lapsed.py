"""Grants that had lapsed when they were taken up: what has not begun is asked for again."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from qmsup.listener.relay.engine import RelayOptions
from qmsup.wire.listening import Accepted, Ask, CutOff, Done, FromScheduler, Moved
from tests.support.granting import GrantingScheduler, grant
from tests.support.relaying import (
    Relaying,
    order,
    read_all,
    read_until,
    relaying_with_scheduler,
)
from tests.support.servers import free_port
from tests.support.upstreams import SSE_HEAD, chunked, plain, saying, upstream

Both = tuple[Relaying, GrantingScheduler]


@pytest.fixture
def both(places: Path) -> Iterator[Both]:
    options = RelayOptions(send_loading_state=True, loading_remarks=False, access_log=False)
    with relaying_with_scheduler(options) as pair:
        yield pair


@contextmanager
def _granted_too_late(both: Both, times: int, last: str) -> Iterator[list[Ask]]:
    """So many grants are void when they are taken up, and their child is not there; the next one is for `last`."""
    _, scheduler = both
    asks: list[Ask] = []
    nobody = f"127.0.0.1:{free_port()}"

    def answer(ask: Ask) -> list[FromScheduler]:
        asks.append(ask)
        if len(asks) > times:
            return [grant(ask, last)]
        return [
            grant(ask, nobody),
            CutOff(request=ask.request, code="model_unloaded", message="stopped", had_lapsed=True),
        ]

    scheduler.on_ask = answer
    yield asks


def test_a_grant_that_had_lapsed_before_its_request_began_is_asked_for_anew(both: Both) -> None:
    engine, scheduler = both
    with (
        upstream(saying(plain(b"hello"))) as child,
        _granted_too_late(both, 2, child.where) as asks,
        engine.hold(order(b"abc")) as client,
    ):
        assert read_until(client, b"hello").startswith(b"HTTP/1.1 200")

    assert child.requests[0].endswith(b"abc")
    assert len(child.requests) == 1
    assert len({ask.request for ask in asks}) == 1
    engine.until(lambda: not engine.engine._timers[1:])
    dones = [scheduler.hears(Done, count=count) for count in (1, 2, 3)]
    assert [done.outcome for done in dones] == ["failed", "failed", "finished"]


def test_who_was_told_that_it_waits_is_told_nothing_of_a_grant_that_had_lapsed(both: Both) -> None:
    engine, scheduler = both
    client = engine.hold(order(streaming=True), keeps_alive=False)
    asked = scheduler.hears(Ask)
    scheduler.say(Moved(places=((asked.request, 1),)))
    read_until(client, b"waiting 1")

    with (
        upstream(saying(SSE_HEAD + chunked(b"data: 1\n\n"))) as child,
        _granted_too_late(both, 0, child.where) as asks,
    ):
        void = CutOff(
            request=asked.request, code="model_unloaded", message="stopped", had_lapsed=True
        )
        scheduler.say(grant(asked, f"127.0.0.1:{free_port()}"), void)
        said = read_all(client)

    assert b"error" not in said
    assert said.endswith(b"data: 1\n\n\r\n0\r\n\r\n")
    assert asks[0].waited_ms < 60_000


def test_a_request_is_not_asked_for_anew_for_ever(both: Both) -> None:
    engine, _ = both
    with (
        _granted_too_late(both, 99, "") as asks,
        engine.hold(order(b"abc")) as client,
    ):
        said = read_until(client, b"}}")

    assert said.startswith(b"HTTP/1.1 503")
    assert b"model_unloaded" in said
    assert len(asks) == 4


def test_what_has_begun_is_not_asked_for_anew(both: Both) -> None:
    engine, scheduler = both

    def stall(to: socket.socket, _request: bytes) -> None:
        child.wait_for_client_to_leave(to)

    with upstream(stall) as child:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]
        with engine.hold(order(b"abc")) as client:
            asked = scheduler.hears(Ask)
            scheduler.hears(Accepted)
            engine.until(lambda: bool(child.requests))
            scheduler.say(
                CutOff(
                    request=asked.request,
                    code="model_unloaded",
                    message="stopped",
                    had_lapsed=True,
                )
            )
            assert b"model_unloaded" in read_until(client, b"}}")
