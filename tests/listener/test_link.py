import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from qmsup import places as our_places
from qmsup.errors import Refusal
from qmsup.ids import Epoch, ListenerName, ModelId, RequestId
from qmsup.listener.link import Link
from qmsup.listener.relay.engine import RelayOptions
from qmsup.units import Seconds
from qmsup.wire import listening
from qmsup.wire.listening import (
    Accepted,
    Ask,
    Beat,
    Configured,
    Declined,
    Done,
    Hello,
    Leave,
    Moved,
    Unwelcome,
    Welcome,
)
from tests.support.granting import PATIENCE, GrantingScheduler, grant, granting_scheduler
from tests.support.relaying import (
    Relaying,
    ending_context,
    order,
    read_until,
    relaying,
    relaying_with_scheduler,
)
from tests.support.upstreams import SSE_HEAD, chunked, in_two_parts, plain, saying, upstream

Both = tuple[Relaying, GrantingScheduler]
QUIET = RelayOptions(access_log=False)


@pytest.fixture
def both(places: Path) -> Iterator[Both]:
    with relaying_with_scheduler(QUIET) as pair:
        yield pair


@contextmanager
def _scheduler(epoch: int = 1) -> Iterator[GrantingScheduler]:
    our_places.runtime_dir().mkdir(exist_ok=True, parents=True)
    with granting_scheduler(our_places.scheduler_endpoint(), epoch=epoch) as scheduler:
        yield scheduler


# ---- greeting


def test_a_worker_greets_with_its_name_and_beats(both: Both) -> None:
    engine, scheduler = both

    hello = scheduler.hears(Hello)

    assert hello.listener == "main"
    assert hello.worker == engine.link.worker
    assert hello.worker.startswith(f"main-{hello.pid}-")
    assert (hello.version, hello.leases, hello.waiting) == (listening.VERSION, (), ())
    scheduler.hears(Beat, count=2)


def test_a_scheduler_that_does_not_know_it_is_told_what_waits_and_what_is_held(both: Both) -> None:
    engine, scheduler = both
    stalled = threading.Event()
    with upstream(in_two_parts(SSE_HEAD, b"", stalled)) as child:
        holding, waiting = order(), order()
        scheduler.on_ask = lambda ask: (
            [grant(ask, child.where)] if ask.request == holding.request else []
        )
        clients = [engine.hold(holding), engine.hold(waiting)]
        scheduler.hears(Ask, lambda ask: ask.request == waiting.request)
        read_until(clients[0], b"\r\n\r\n")

        scheduler.say(Unwelcome(reason="not known here", greet=True))

        hello = scheduler.hears(Hello, count=2)
        assert [lease.request for lease in hello.leases] == [holding.request]
        assert [wait.request for wait in hello.waiting] == [waiting.request]
        stalled.set()
        for client in clients:
            client.close()


def test_what_is_held_is_told_with_what_decides_about_its_hold(both: Both) -> None:
    engine, scheduler = both
    stalled = threading.Event()
    wanted = replace(order(), hold=Seconds(0.25), conversation="c", client="k")
    with upstream(in_two_parts(SSE_HEAD, b"", stalled)) as child:
        scheduler.on_ask = lambda ask: [grant(ask, child.where, waited_ms=7)]
        client = engine.hold(wanted)
        asked = scheduler.hears(Ask)
        read_until(client, b"\r\n\r\n")

        scheduler.say(Unwelcome(reason="not known here", greet=True))

        (lease,) = scheduler.hears(Hello, count=2).leases
        stalled.set()
        client.close()
    assert (asked.hold_ms, asked.conversation, asked.client) == (250, "c", "k")
    assert (lease.hold_ms, lease.conversation, lease.client, lease.waited_ms) == (250, "c", "k", 7)


def test_what_waits_is_told_as_it_was_asked(both: Both) -> None:
    engine, scheduler = both
    client = engine.hold(replace(order(), client="k", timeout=Seconds(60.0)))
    scheduler.hears(Ask)

    scheduler.say(Unwelcome(reason="not known here", greet=True))

    (waits,) = scheduler.hears(Hello, count=2).waiting
    assert (waits.client, waits.timeout_ms, waits.hold_ms) == ("k", 60_000, None)
    client.close()


def test_a_new_epoch_is_greeted_anew(both: Both) -> None:
    engine, scheduler = both
    client = engine.hold(order())
    scheduler.hears(Ask)
    engine.until(lambda: engine.link.epoch == 1)

    scheduler.say(Welcome(version=listening.VERSION, epoch=Epoch(2)))

    assert len(scheduler.hears(Hello, count=2).waiting) == 1
    client.close()


def test_who_waits_is_served_by_the_next_scheduler(places: Path) -> None:
    with (
        ending_context(),
        relaying(QUIET) as engine,
        upstream(saying(plain(b"late"))) as child,
    ):
        with _scheduler() as first:
            client = engine.hold(order())
            asked = first.hears(Ask)
            first.say(Moved(places=((asked.request, 1),)))
        with _scheduler(epoch=2) as second:
            second.hears(Beat)
            second.say(Unwelcome(reason="not known here", greet=True))
            assert [w.request for w in second.hears(Hello).waiting] == [asked.request]
            second.say(grant(asked, child.where))
            assert read_until(client, b"late")
            client.close()


# ---- asking


def test_an_ask_is_repeated_until_it_is_answered(both: Both) -> None:
    engine, scheduler = both
    client = engine.hold(order())

    asks = [scheduler.hears(Ask, count=count) for count in (1, 2)]
    assert asks[0] == msgspec.structs.replace(asks[1], waited_ms=0)
    assert asks[1].waited_ms >= 1000

    scheduler.say(Moved(places=((asks[0].request, 1),)))
    engine.until(lambda: engine.link._open[asks[0].request].is_answered)
    client.close()


def test_without_a_scheduler_a_new_request_gets_a_503_after_the_grace(places: Path) -> None:
    with ending_context(), relaying(QUIET, grace=Seconds(0.1)) as engine:
        with engine.hold(order()) as client:
            said = read_until(client, b"}}")

        assert said.startswith(b"HTTP/1.1 503")
        assert b"scheduler_unavailable" in said
        assert b"Retry-After" in said
        with _scheduler() as scheduler:
            scheduler.hears(Leave)


def test_who_was_heard_before_the_scheduler_fell_silent_waits_on(places: Path) -> None:
    with ending_context(), relaying(QUIET, grace=Seconds(0.1)) as engine:
        with _scheduler() as scheduler:
            scheduler.on_ask = lambda ask: [Moved(places=((ask.request, 1),))]
            client = engine.hold(order())
            asked = scheduler.hears(Ask)
            engine.until(lambda: engine.link._open[asked.request].is_answered)
            engine.do(lambda: engine.link.tick(engine.engine.now + 9.0))

        assert engine.link.waiting == 1
        client.close()


def test_a_grant_that_nobody_waits_for_is_declined(both: Both) -> None:
    _, scheduler = both
    scheduler.hears(Hello)

    scheduler.say(grant(Ask(request=RequestId("of nobody"), model=ModelId("m")), "127.0.0.1:1"))

    assert scheduler.hears(Declined).request == "of nobody"


def test_a_grant_that_comes_twice_is_accepted_twice_and_relayed_once(both: Both) -> None:
    engine, scheduler = both
    hold_back = threading.Event()

    with upstream(in_two_parts(b"", plain(b"x"), hold_back)) as child:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)] * 2
        with engine.hold(order()) as client:
            scheduler.hears(Accepted, count=2)
            hold_back.set()
            read_until(client, b"\r\n\r\nx")
        scheduler.hears(Done)

        assert len(child.requests) == 1


def test_a_grant_that_came_while_its_worker_was_frozen_is_not_used_but_asked_for_again(
    both: Both,
) -> None:
    engine, scheduler = both
    with engine.hold(order()) as client, socket.create_server(("127.0.0.1", 0)) as gone:
        asked = scheduler.hears(Ask)
        stale = grant(asked, f"127.0.0.1:{gone.getsockname()[1]}")

        def thaw() -> None:
            engine.link._read_at = -100.0
            scheduler.say(stale)
            assert select.select([engine.link.fileno()], [], [], PATIENCE)[0]

        with upstream(saying(plain(b"hello"))) as child:
            scheduler.on_ask = lambda ask: [grant(ask, child.where)]
            engine.do(thaw)
            read_until(client, b"hello")

        assert scheduler.hears(Ask, count=2).request == asked.request
        assert not select.select([gone], [], [], 0)[0], "nobody has knocked there"
        assert scheduler.hears(Done).outcome == "finished"


class _AtOnce:
    """An asker whose use is over as soon as it is granted."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def on_place(self, place: int, *, was_ready: bool | None) -> None:
        raise AssertionError(place)

    def on_loading(self) -> None:
        raise AssertionError

    def on_granted(self, grant: listening.Granted) -> None:
        self._link.done(grant.request, "finished", served=True)

    def on_refused(self, refusal: Refusal, count_at: object = None) -> None:
        raise AssertionError(refusal)

    def on_cut(self, refusal: Refusal, *, had_lapsed: bool = False) -> None:
        raise AssertionError(refusal)


@pytest.mark.usefixtures("places")
def test_a_use_that_is_over_at_once_is_told_in_one_word() -> None:
    with _scheduler() as scheduler:
        scheduler.on_ask = lambda ask: [grant(ask, "127.0.0.1:1")]
        link = Link(
            ListenerName("main"), endpoint=our_places.scheduler_endpoint(), grace=Seconds(9.0)
        )
        link.request(Ask(request=RequestId("r"), model=ModelId("m")), _AtOnce(link), 0.0)
        poll = select.poll()
        poll.register(link.fileno(), select.POLLIN)
        for _ in range(100):
            link.flush(0.0)
            link.read()
            if not link.waiting:
                break
            poll.poll(100)
        assert link.flush(0.0) is not None
        assert link.flush(1.0) is None

        assert scheduler.hears(Done).request == "r"
        assert scheduler.kinds() == ["Hello", "Ask", "Done"]
        link.close()


def test_a_use_that_lasts_is_told_before_its_end(both: Both) -> None:
    engine, scheduler = both
    hold_back = threading.Event()

    with upstream(in_two_parts(b"", plain(b"x"), hold_back)) as child:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]
        with engine.hold(order()) as client:
            scheduler.hears(Accepted)
            hold_back.set()
            read_until(client, b"\r\n\r\nx")
        scheduler.hears(Done)

    said = [kind for kind in scheduler.kinds() if kind != "Beat"]
    assert said == ["Hello", "Ask", "Accepted", "Done"]


def test_what_cannot_be_read_is_survived(both: Both, caplog: pytest.LogCaptureFixture) -> None:
    engine, scheduler = both
    scheduler.hears(Hello)

    scheduler.say(Welcome(version=99, epoch=Epoch(1)))
    scheduler.say(Unwelcome(reason="another version", greet=False))
    scheduler.say(Unwelcome(reason="another version", greet=False))

    engine.until(lambda: engine.link._complaint == "another version")
    said = [record.message for record in caplog.records]
    assert said.count("link.unreadable") == 1
    assert said.count("link.unwelcome") == 1


def test_a_stream_goes_on_without_a_scheduler(places: Path) -> None:
    go_on = threading.Event()

    script = in_two_parts(
        SSE_HEAD + chunked(b"data: 1\n\n", ended=False), chunked(b"data: 2\n\n"), go_on
    )

    with ending_context(), relaying(QUIET) as engine, upstream(script) as child:
        with _scheduler() as scheduler:
            scheduler.on_ask = lambda ask: [grant(ask, child.where)]
            client = engine.hold(order())
            read_until(client, b"data: 1")
        go_on.set()

        with client:
            assert read_until(client, b"0\r\n\r\n")


# ---- the configuration


def test_a_version_is_told_once_and_every_beat_says_which(both: Both) -> None:
    engine, scheduler = both
    told: list[tuple[str, str]] = []
    engine.link.on_configured = lambda version, path: told.append((version, str(path)))
    scheduler.hears(Hello)
    two, three = Configured(version="2", path="/x/2"), Configured(version="3", path="/x/3")

    scheduler.say(two, two, three)

    scheduler.hears(Beat, lambda beat: beat.configured == "3")
    assert told == [("2", "/x/2"), ("3", "/x/3")]
