import logging
import random
import select
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmsup.listener.relay.engine import RelayOptions, until_tick
from qmsup.listener.relay.held import Held
from qmsup.wire.listening import Ask, Beat, Done, Loading, Moved, Refused
from tests.support.granting import PATIENCE, GrantingScheduler, grant
from tests.support.relaying import (
    Relaying,
    order,
    read_all,
    read_until,
    relaying_with_scheduler,
)
from tests.support.upstreams import SSE_HEAD, chunked, plain, saying, upstream

Both = tuple[Relaying, GrantingScheduler]


@pytest.fixture
def both(places: Path) -> Iterator[Both]:
    with relaying_with_scheduler(RelayOptions(send_loading_state=False)) as pair:
        yield pair


def test_a_beat_tells_what_is_held(both: Both) -> None:
    engine, scheduler = both
    client = engine.hold(order())

    scheduler.hears(Beat, lambda beat: (beat.waiting, beat.held) == (1, 0))

    client.close()


@pytest.mark.parametrize(
    ("now", "then"), [(7.0, 8.0), (7.0004, 8.0), (6.9999, 8.0), (7.3, 8.0), (7.6, 9.0)]
)
def test_ticks_come_at_the_same_moments_in_all_workers(now: float, then: float) -> None:
    assert now + until_tick(now) == pytest.approx(then)


def test_without_leave_nothing_is_said_while_it_waits(both: Both) -> None:
    engine, scheduler = both
    with upstream(saying(SSE_HEAD + chunked(b"data: 1\n\n"))) as child:
        client = engine.hold(order(streaming=True), keeps_alive=False)
        asked = scheduler.hears(Ask)
        scheduler.say(grant(asked, child.where))

        said = read_all(client)

    assert b"qm-status" not in said
    assert said.startswith(b"HTTP/1.1 200 OK")


def test_a_fault_in_ones_handling_ends_only_that_one(
    both: Both, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, scheduler = both
    with upstream(saying(plain(b"fine"))) as child:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]
        victim = engine.hold(order())
        read_until(victim, b"fine")

        def break_down(_event: int) -> None:
            raise ZeroDivisionError

        near, far = socket.socketpair()
        far.send(b"x")
        engine.do(lambda: engine.engine.watch(near.fileno(), select.EPOLLIN, break_down))
        engine.until(lambda: "relay.broken" in [r.message for r in caplog.records])
        engine.do(lambda: engine.engine.release(near.fileno()))

        with engine.hold(order()) as client:
            assert read_until(client, b"fine")
    near.close()
    far.close()
    victim.close()


def test_a_fault_at_a_tick_ends_only_that_one_and_ticks_go_on(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, scheduler = both
    victim = engine.hold(order())
    scheduler.hears(Ask)
    unlucky = next(iter(engine.do(lambda: set(engine.engine._held))))
    ticked: list[Held] = []

    def tick(held: Held, _now: float) -> None:
        ticked.append(held)
        if held is unlucky:
            raise ZeroDivisionError

    monkeypatch.setattr(Held, "tick", tick)
    with engine.hold(order()):
        assert victim.recv(10) == b""
        victim.close()
        engine.until(lambda: len(ticked) > 3)

    assert len([held for held in ticked if held is unlucky]) == 1


def test_the_access_log_has_a_line_a_request_and_no_query(
    both: Both, caplog: pytest.LogCaptureFixture
) -> None:
    engine, scheduler = both
    caplog.set_level(logging.INFO, "qmsup.relay")
    with upstream(saying(plain(b"hello"))) as child:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]
        with engine.hold(order()) as client:
            said = read_until(client, b"hello")
        scheduler.hears(Done)
        engine.until(lambda: bool(engine.ends))

    (line,) = [record for record in caplog.records if record.message == "request"]
    fields = line.__dict__["qmsup_fields"]
    assert (fields["method"], fields["path"], fields["status"]) == ("POST", "/v1/x", 200)
    assert fields["bytes"] == len(said)
    assert (fields["model"], fields["wait_ms"]) == (order().model, 0)
    assert "secret" not in str(fields)


def test_an_engine_that_ends_cuts_its_clients_off(both: Both) -> None:
    engine, scheduler = both
    client = engine.hold(order())
    scheduler.hears(Ask)

    engine.stop()

    client.settimeout(PATIENCE)
    assert client.recv(10) == b""
    client.close()


def test_nothing_is_left_of_clients_and_children_that_come_and_go_as_they_like(
    both: Both, caplog: pytest.LogCaptureFixture
) -> None:
    engine, scheduler = both
    chance = random.Random(7)
    answers = [
        plain(b"x" * 200_000),
        SSE_HEAD + chunked(b"data: 1\n\n"),
        SSE_HEAD + chunked(b"data: 1\n\n", ended=False),
        b"HTTP/1.1 200 OK\r\n\r\nabc",
        b"",
        b"nonsense\r\n",
    ]
    watched = engine.do(lambda: len(engine.engine._handlers))

    def whatever(to: socket.socket, _request: bytes) -> None:
        to.sendall(chance.choice(answers))

    with upstream(whatever) as child:
        scheduler.on_ask = lambda ask: chance.choice(
            [
                [grant(ask, child.where)],
                [grant(ask, child.where)] * 2,
                [Moved(places=((ask.request, 3),)), grant(ask, child.where)],
                [Loading(request=ask.request)],
                [Refused(request=ask.request, code="line_full", message="full")],
                [grant(ask, "127.0.0.1:1")],
                [],
            ]
        )
        clients: list[socket.socket] = []
        for _ in range(300):
            clients.append(
                engine.hold(
                    order(b"abc", streaming=chance.random() < 0.5),
                    is_http11=chance.random() < 0.8,
                    keeps_alive=chance.random() < 0.5,
                )
            )
            if chance.random() < 0.5:
                clients.pop(chance.randrange(len(clients))).close()
        for client in clients:
            client.close()
        engine.until(lambda: engine.engine.held == 0)
        engine.until(lambda: len(engine.engine._handlers) == watched)

    assert (engine.link.waiting, engine.link.held) == (0, 0)
    assert len(engine.ends) == 300
    assert "relay.broken" not in caplog.text
    assert "link.broken" not in caplog.text
