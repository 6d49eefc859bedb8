"""Leases that are lent to a worker, with a real relay: used again without asking, and given back."""

import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from qmsup import places as our_places
from qmsup.errors import Refusal
from qmsup.ids import ListenerName, ModelId, RequestId
from qmsup.listener.link import Link
from qmsup.listener.relay.engine import RelayOptions
from qmsup.units import Seconds
from qmsup.wire import codec
from qmsup.wire.listening import (
    Accepted,
    Ask,
    Beat,
    CutOff,
    Declined,
    Done,
    Granted,
    Hello,
    Lasts,
    Recall,
    Refused,
    Unwelcome,
    Welcome,
)
from tests.support.granting import PATIENCE, GrantingScheduler, grant, granting_scheduler
from tests.support.relaying import Relaying, order, read_until, relaying_with_scheduler
from tests.support.upstreams import (
    SSE_HEAD,
    Script,
    Upstream,
    in_two_parts,
    plain,
    saying,
    upstream,
)

Both = tuple[Relaying, GrantingScheduler]
FOR_EVER = 600_000


@pytest.fixture
def both(places: Path) -> Iterator[Both]:
    with relaying_with_scheduler(RelayOptions(access_log=False)) as pair:
        yield pair


def _lend(scheduler: GrantingScheduler, child: Upstream, lent_ms: int = FOR_EVER) -> None:
    """Every ask is granted, and the lease lent."""
    scheduler.on_ask = lambda ask: [
        msgspec.structs.replace(grant(ask, child.where), lent_ms=lent_ms)
    ]


def _first_whole_then_stalled(go_on: threading.Event) -> Script:
    """The first request is answered at once, others begin an answer and wait."""
    scripts = iter((saying(plain(b"x")),))

    def serve(connection: socket.socket, request: bytes) -> None:
        script = next(scripts, None) or in_two_parts(SSE_HEAD, b"", go_on)
        script(connection, request)

    return serve


def _serve(engine: Relaying, times: int = 1) -> None:
    for _ in range(times):
        with engine.hold(order()) as client:
            assert read_until(client, b"\r\n\r\nx")


def test_it_says_that_it_can_be_lent_leases(both: Both) -> None:
    _, scheduler = both

    assert scheduler.hears(Hello).lends


def test_requests_that_follow_need_not_be_asked_for(both: Both) -> None:
    engine, scheduler = both
    with upstream(saying(plain(b"x"))) as child:
        _lend(scheduler, child)
        _serve(engine, 3)
        scheduler.hears(Beat, lambda beat: beat.held == 1)

        scheduler.say(Recall())

        done = scheduler.hears(Done)
        assert len(child.requests) == 3
    assert scheduler.hears(Ask).request == done.request
    assert [use.outcome for use in done.uses] == ["finished"] * 2
    assert scheduler.kinds() == ["Hello", "Ask", "Accepted", "Done"]
    scheduler.hears(Beat, lambda beat: beat.held == 0)


def test_its_answer_says_that_it_did_not_wait(both: Both) -> None:
    engine, scheduler = both
    with upstream(saying(plain(b"x"))) as child:
        scheduler.on_ask = lambda ask: [
            msgspec.structs.replace(
                grant(ask, child.where, was_ready=False, waited_ms=77), lent_ms=FOR_EVER
            )
        ]
        _serve(engine)
        with engine.hold(order()) as client:
            head = read_until(client, b"\r\n\r\nx")
    assert b"X-QM-Wait-Ms: 0" in head
    assert b"X-QM-Model-Loaded: 0" in head


def test_it_is_given_back_by_itself_when_its_time_is_over(both: Both) -> None:
    engine, scheduler = both
    with upstream(saying(plain(b"x"))) as child:
        _lend(scheduler, child, lent_ms=1)
        _serve(engine)

        assert scheduler.hears(Done).uses == ()


def test_recalled_while_in_use_it_is_given_back_when_that_ends(both: Both) -> None:
    engine, scheduler = both
    go_on = threading.Event()
    with upstream(in_two_parts(b"", plain(b"x"), go_on)) as child:
        _lend(scheduler, child)
        with engine.hold(order()) as client:
            scheduler.hears(Accepted)
            scheduler.say(Recall())
            go_on.set()
            read_until(client, b"\r\n\r\nx")

        scheduler.hears(Done)
        _serve(engine)
        scheduler.hears(Ask, count=2)


def test_what_is_cut_is_the_request_that_uses_it_now(both: Both) -> None:
    engine, scheduler = both
    stalled = threading.Event()
    with upstream(_first_whole_then_stalled(stalled)) as child:
        _lend(scheduler, child)
        _serve(engine)
        first = scheduler.hears(Ask).request
        with engine.hold(order()) as client:
            read_until(client, b"\r\n\r\n")
            scheduler.say(CutOff(request=first, code="model_unloaded", message="stopped under it"))
            read_until(client, b"stopped under it")
        stalled.set()
    done = scheduler.hears(Done)
    assert (done.request, [use.outcome for use in done.uses]) == (first, ["failed"])


def test_what_is_cut_while_it_is_only_kept_is_used_no_more(both: Both) -> None:
    engine, scheduler = both
    with upstream(saying(plain(b"x"))) as child:
        _lend(scheduler, child)
        _serve(engine)
        first = scheduler.hears(Ask).request

        scheduler.say(CutOff(request=first, code="model_unloaded", message="stopped"))

        engine.until(lambda: engine.link.held == 0)
        _serve(engine)
        assert scheduler.hears(Ask, count=2).request != first
    assert "Done" not in scheduler.kinds()


def test_a_worker_that_greets_gives_back_what_it_only_keeps(both: Both) -> None:
    engine, scheduler = both
    with upstream(saying(plain(b"x"))) as child:
        _lend(scheduler, child)
        _serve(engine)

        scheduler.say(Unwelcome(reason="not known here", greet=True))

        [lease] = scheduler.hears(Hello, count=2).leases
        assert scheduler.hears(Done).request == lease.request
    assert scheduler.kinds()[-2:] == ["Hello", "Done"], "who does not know it would ask it to greet"


def test_a_new_scheduler_hears_of_it_as_the_former_one_did(both: Both) -> None:
    engine, scheduler = both
    stalled = threading.Event()
    with upstream(_first_whole_then_stalled(stalled)) as child:
        _lend(scheduler, child)
        _serve(engine)
        first = scheduler.hears(Ask).request
        with engine.hold(replace(order(), conversation="c")) as client:
            read_until(client, b"\r\n\r\n")

            scheduler.say(Welcome(version=1, epoch=2))  # type: ignore[arg-type] # a number of its kind

            assert [h.request for h in scheduler.hears(Hello, count=2).leases] == [first]
        stalled.set()
    done = scheduler.hears(Done)
    assert (done.request, [use.conversation for use in done.uses]) == (first, ["c"])


def _unexpected(refusal: Refusal) -> None:
    raise AssertionError(refusal)


def test_a_further_use_that_lasts_is_told_and_can_be_cut_under_its_own_name(both: Both) -> None:
    engine, scheduler = both
    stalled = threading.Event()
    with upstream(_first_whole_then_stalled(stalled)) as child:
        _lend(scheduler, child, lent_ms=1000)
        _serve(engine)
        first, wanted = scheduler.hears(Ask).request, replace(order(), conversation="c")
        with engine.hold(wanted) as client:
            read_until(client, b"\r\n\r\n")
            lasts = scheduler.hears(Lasts)
            assert (lasts.request, lasts.model, lasts.conversation) == (wanted.request, "m", "c")
            assert scheduler.hears(Done) == Done(request=first, outcome="finished", served=True)

            scheduler.say(CutOff(request=wanted.request, code="model_unloaded", message="stopped"))

            read_until(client, b"stopped")
        stalled.set()
    assert scheduler.hears(Done, count=2) == Done(
        request=wanted.request, outcome="failed", served=True
    )
    assert scheduler.kinds() == ["Hello", "Ask", "Accepted", "Lasts", "Done", "Done"]


class _Uses:
    """An asker that does with a grant what it is told to."""

    def __init__(self) -> None:
        self.granted: list[RequestId] = []
        self.on_end: Callable[[Refusal], None] = _unexpected

    def on_place(self, place: int, *, was_ready: bool | None) -> None:
        raise AssertionError(place)

    def on_loading(self) -> None:
        raise AssertionError

    def on_granted(self, grant: Granted) -> None:
        self.granted.append(grant.request)
        if grant.request == "breaks":
            raise RuntimeError("on purpose")

    def on_refused(self, refusal: Refusal, count_at: object = None) -> None:
        self.on_end(refusal)

    def on_cut(self, refusal: Refusal, *, had_lapsed: bool = False) -> None:
        self.on_end(refusal)


def _ask(name: str) -> Ask:
    return Ask(request=RequestId(name), model=ModelId("m"))


def test_a_promise_is_kept_when_the_turn_ends_unless_its_client_leaves(
    both: Both, caplog: pytest.LogCaptureFixture
) -> None:
    engine, scheduler = both
    uses = _Uses()
    link: Link = engine.link
    scheduler.on_ask = lambda ask: [
        msgspec.structs.replace(grant(ask, "127.0.0.1:1"), lent_ms=FOR_EVER)
    ]

    def ask_and_leave() -> None:
        link.request(_ask("leaves"), uses, engine.engine.now)
        link.leave(RequestId("leaves"))
        link.request(_ask("ends"), uses, engine.engine.now)
        link.done(RequestId("ends"), "finished", served=False)
        link.request(_ask("breaks"), uses, engine.engine.now)

    uses.on_end = lambda _refusal: link.done(RequestId("breaks"), "failed", served=False)

    _keep_one(engine, uses)
    engine.do(ask_and_leave)

    engine.until(lambda: uses.granted == ["first", "breaks"])
    assert "link.broken" in [record.message for record in caplog.records]
    done = scheduler.hears(Done)
    assert [use.request for use in done.uses] == ["ends", "breaks"]
    assert not [m for m in scheduler.heard if isinstance(m, Declined)]


def _keep_one(engine: Relaying, uses: _Uses) -> None:
    """Have one lease granted, and used up, that is lent."""
    link = engine.link
    engine.do(lambda: link.request(_ask("first"), uses, engine.engine.now))
    engine.until(lambda: uses.granted == ["first"])
    engine.do(lambda: link.done(RequestId("first"), "finished", served=True))


def test_what_is_cut_before_it_began_is_asked_for_anew(both: Both) -> None:
    """The model was unloaded when the request came, and not under it: it waits for the next start."""
    engine, scheduler = both
    uses = _Uses()
    _lend_nothing(scheduler)
    _keep_one(engine, uses)

    def promise_and_cut() -> None:
        engine.link.request(_ask("second"), uses, engine.engine.now)
        cut = CutOff(request=RequestId("first"), code="model_unloaded", message="stopped")
        engine.link._take(codec.encode(cut))

    engine.do(promise_and_cut)

    scheduler.hears(Ask, lambda ask: ask.request == "second")
    engine.until(lambda: uses.granted == ["first", "second"])
    assert engine.link.held == 1


def _lend_nothing(scheduler: GrantingScheduler) -> None:
    """Grants without an upstream, lent for ever."""
    scheduler.on_ask = lambda ask: [
        msgspec.structs.replace(grant(ask, "127.0.0.1:1"), lent_ms=FOR_EVER)
    ]


@pytest.mark.usefixtures("places")
def test_a_request_that_comes_while_something_is_sent_has_its_lease_at_once() -> None:
    """A refusal may end one request of a connection, and the next is there already."""
    endpoint = our_places.scheduler_endpoint()
    our_places.runtime_dir().mkdir(exist_ok=True, parents=True)
    with granting_scheduler(endpoint) as scheduler:
        refusal = Refused(request=RequestId("other"), code="queue_full", message="no room")
        _lend_nothing(scheduler)
        lent = scheduler.on_ask
        scheduler.on_ask = lambda ask: [refusal] if ask.request == "other" else lent(ask)
        link, uses = Link(ListenerName("main"), endpoint=endpoint, grace=Seconds(9.0)), _Uses()
        heard = select.poll()
        heard.register(link.fileno(), select.POLLIN)
        link.request(_ask("first"), uses, 0.0)
        while not uses.granted:
            link.flush(0.0)
            heard.poll(100)
            link.read()
        link.done(RequestId("first"), "finished", served=True)
        uses.on_end = lambda _refusal: link.request(_ask("next"), uses, 0.0)
        link.request(Ask(request=RequestId("other"), model=ModelId("n")), uses, 0.0)

        deadline = time.monotonic() + PATIENCE
        while link.waiting and time.monotonic() < deadline:
            link.tick(0.0)  # there is something to send, and what has come meanwhile is read then
            link.flush(0.0)

        assert uses.granted == ["first", "next"]
        link.close()


def test_a_worker_that_ends_gives_back_what_it_only_keeps(places: Path) -> None:
    with relaying_with_scheduler(RelayOptions(access_log=False)) as (engine, scheduler):
        with upstream(saying(plain(b"x"))) as child:
            _lend(scheduler, child)
            _serve(engine, 2)
        engine.stop()

        assert [use.outcome for use in scheduler.hears(Done).uses] == ["finished"]
