"""Orders that go to a Unix socket once they are granted, whatever the grant names."""

import dataclasses
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmsup.ids import Epoch
from qmsup.listener.relay.engine import RelayOptions
from qmsup.listener.relay.order import RelayOrder
from qmsup.units import Seconds
from qmsup.wire.listening import VERSION, Accepted, Done, Hello, Welcome
from tests.support.granting import GrantingScheduler, grant
from tests.support.relaying import Relaying, order, read_until, relaying_with_scheduler
from tests.support.upstreams import plain, read_request

Both = tuple[Relaying, GrantingScheduler]


@pytest.fixture
def both(places: Path) -> Iterator[Both]:
    options = RelayOptions(send_loading_state=False, loading_remarks=False, access_log=False)
    with relaying_with_scheduler(options, grace=Seconds(0.4)) as pair:
        yield pair


def via(path: Path, body: bytes = b"") -> RelayOrder:
    return dataclasses.replace(order(body), via=str(path))


def test_it_is_carried_there_and_back(both: Both, places: Path) -> None:
    engine, scheduler = both
    scheduler.on_ask = lambda ask: [grant(ask, "127.0.0.1:1")]
    body = b"x" * 500_000
    heard: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(places / "door"))
        door.listen()

        def serve() -> None:
            conn, _ = door.accept()
            with conn:
                heard.append(read_request(conn))
                conn.sendall(plain(b"hello"))

        thread = threading.Thread(target=serve)
        thread.start()
        with engine.hold(via(places / "door", body)) as client:
            read_until(client, b"hello")
        thread.join(10)

    assert heard[0].endswith(body)
    assert b"\r\nHost: 127.0.0.1:1\r\n" in heard[0]
    assert scheduler.hears(Done).outcome == "finished"


@pytest.mark.parametrize("stale", [False, True])
def test_where_nobody_listens_the_client_is_told(both: Both, places: Path, stale: bool) -> None:
    engine, scheduler = both
    scheduler.on_ask = lambda ask: [grant(ask, "127.0.0.1:1")]
    path = places / "door"
    if stale:
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(str(path))

    with engine.hold(via(path)) as client:
        said = read_until(client, b"upstream_failed")

    assert said.startswith(b"HTTP/1.1 502 ")
    done = scheduler.hears(Done)
    assert (done.outcome, done.served) == ("failed", False)


def test_what_the_scheduler_process_had_when_it_ended_the_next_one_is_given(
    both: Both, places: Path
) -> None:
    engine, scheduler = both
    scheduler.on_ask = lambda ask: [grant(ask, "127.0.0.1:1")]
    body = b"x" * 200_000
    heard: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(places / "door"))
        door.listen()

        def serve() -> None:
            for is_last in (False, True):
                conn, _ = door.accept()
                with conn:
                    heard.append(read_request(conn))
                    if is_last:
                        conn.sendall(plain(b"hello"))
                if not is_last:
                    scheduler.welcomes = False  # it knows the first epoch alone
                    scheduler.say(Welcome(version=VERSION, epoch=Epoch(2)))

        thread = threading.Thread(target=serve)
        thread.start()
        with engine.hold(via(places / "door", body)) as client:
            read_until(client, b"hello")
        thread.join(10)

    assert heard[0] == heard[1]
    assert heard[0].endswith(body)
    greeting = scheduler.hears(Hello, lambda hello: bool(hello.leases))
    assert [held.request for held in greeting.leases] == [scheduler.hears(Done).request]


def test_a_client_that_leaves_while_the_next_one_is_awaited_is_let_go(
    both: Both, places: Path
) -> None:
    engine, scheduler = both
    scheduler.on_ask = lambda ask: [grant(ask, "127.0.0.1:1")]

    with engine.hold(via(places / "nobody")):
        scheduler.hears(Accepted)

    assert scheduler.hears(Done).outcome == "abandoned"
    engine.until(lambda: engine.engine.held == 0)
