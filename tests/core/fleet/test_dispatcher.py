"""Which host each request of a route goes to, told as stories: what happens on the left, what is said on the right."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from qmsup.core.fleet.chooser import HostView
from qmsup.core.fleet.dispatcher import Dispatcher
from qmsup.core.fleet.sights import BELIEVED_FOR, Sight
from qmsup.core.fleet.wishes import Fails, Goes, Said, Stands, Wish
from qmsup.ids import HostName, ModelId, RequestId, RouteName, WorkerId
from qmsup.spec import LOCAL, Affinity, HostSpec, PeerSpec, RouteSpec, SlotsSpec, Spec
from qmsup.units import Seconds

A, B, FAR = HostName("a"), HostName("b"), HostName("far")
CHAT = ModelId("chat")
W1, W2 = WorkerId("w1"), WorkerId("w2")
AT = Seconds(100.0)


def _host(name: HostName, parallel: int = 1, queue_max: int = 1) -> HostSpec:
    slots = SlotsSpec(parallel=parallel, queue_max=queue_max)
    return HostSpec(name=name, upstream=f"{name}:80", models={CHAT: slots})


def _route(name: str, *hosts: HostName, **more: Any) -> RouteSpec:
    return RouteSpec(name=RouteName(name), hosts=hosts, **more)


_ROUTES = (
    _route("r", A, B),
    _route("one", A),
    _route("agent-*", A, B, affinity=Affinity.ROUTE, queue=False),
    _route("home", LOCAL, A),
    _route("far", A, peers=(HostName("gone"), HostName("other"), FAR)),
)
SPEC = Spec(
    models={},
    hosts={A: _host(A), B: _host(B)},
    peers={
        FAR: PeerSpec(name=FAR, upstream="far:80", models=(CHAT,)),
        HostName("other"): PeerSpec(name=HostName("other"), upstream="o:80", models=()),
    },
    routes={route.name: route for route in _ROUTES},
)


def _local(model: ModelId) -> HostView:
    is_chat = model == CHAT
    context = 1000 if is_chat else None
    return HostView(is_healthy=True, is_loaded=is_chat, can_serve=True, free=9, context=context)


def _sight(host: HostName, at: float = AT, **more: Any) -> Sight:
    fields = {"is_healthy": True, "loaded": frozenset({CHAT}), **more}
    return Sight(host=host, at=Seconds(at), **fields)


def _fleet(*seen: HostName, spec: Spec = SPEC) -> Dispatcher:
    fleet = Dispatcher(spec, _local, AT)
    for host in seen or (A, B):
        assert fleet.seen(_sight(host), AT) == []
    return fleet


def _wish(request: str, route: str = "r", **more: Any) -> Wish:
    fields = {"worker": W1, "model": CHAT, **more}
    return Wish(request=RequestId(request), route=RouteName(route), **fields)


def _ask(fleet: Dispatcher, request: str, route: str = "r", at: float = AT, **more: Any) -> str:
    return _told(fleet.ask(_wish(request, route, **more), Seconds(at)))


def _end(fleet: Dispatcher, request: str, at: float = AT) -> str:
    return _told(fleet.end(RequestId(request), Seconds(at)))


def _told(said: Iterable[Said]) -> str:
    return ", ".join(_words(one) for one in said)


def _words(said: Said) -> str:
    match said:
        case Goes(wish=wish, host=host):
            return f"{wish.request}>{host}"
        case Stands(wish=wish, place=place):
            return f"{wish.request}#{place}"
        case Fails(wish=wish, refusal=refusal):
            return f"{wish.request}!{refusal.code}"


# ---- slots and lines


def test_a_host_serves_what_it_takes_then_others_wait_and_then_they_are_refused() -> None:
    fleet = _fleet()

    assert _ask(fleet, "r1", "one") == "r1>a"
    assert _ask(fleet, "r2", "one") == "r2#1"
    assert _ask(fleet, "r3", "one") == "r3!queue_full"
    assert not fleet.knows(RequestId("r3"))
    assert fleet.worker_of(RequestId("r3")) is None
    assert fleet.worker_of(RequestId("r2")) == W1
    assert _end(fleet, "r1", AT + 4) == "r2>a"
    assert _end(fleet, "r1") == ""
    assert _end(fleet, "r2") == ""


def test_who_waited_is_told_how_long_and_others_how_they_stand() -> None:
    fleet = _fleet(spec=replace(SPEC, hosts={A: _host(A, queue_max=3)}))
    for request in ("r1", "r2", "r3", "r4"):
        _ask(fleet, request, "one")

    said = fleet.end(RequestId("r1"), Seconds(AT + 4))

    assert _told(said) == "r2>a, r3#1, r4#2"
    assert isinstance(said[0], Goes)
    assert said[0].waited == 4.0
    assert _end(fleet, "r3") == "r4#1"


def test_asking_again_tells_the_same() -> None:
    fleet = _fleet()
    _ask(fleet, "r1", "one")
    _ask(fleet, "r2", "one")

    assert _ask(fleet, "r1", "one") == "r1>a"
    assert _ask(fleet, "r2", "one") == "r2#1"


def test_a_route_that_does_not_queue_is_counted_and_keeps_others_out() -> None:
    fleet = _fleet()

    assert [_ask(fleet, f"t{n}", "agent-7") for n in range(3)] == ["t0>a", "t1>a", "t2>a"]
    assert fleet.limiter.in_flight(A, CHAT) == 3
    assert _ask(fleet, "r1", "one") == "r1#1"
    assert _ask(fleet, "r2") == "r2>b"


def test_control_calls_take_no_slot_and_go_where_their_conversation_is() -> None:
    fleet = _fleet()
    _ask(fleet, "r1", conversation="f")
    _ask(fleet, "r2", conversation="g")

    assert _ask(fleet, "c1", conversation="g", is_control=True) == "c1>b"
    assert _end(fleet, "c1") == ""
    assert fleet.limiter.in_flight(B, CHAT) == 1


# ---- leases


def test_a_conversation_keeps_its_host_though_another_is_freer() -> None:
    fleet = _fleet()
    _ask(fleet, "r1", conversation="f")
    _end(fleet, "r1")
    _ask(fleet, "r2")

    assert _ask(fleet, "r3", conversation="f") == "r3#1"


def test_all_of_a_route_may_share_one_host() -> None:
    fleet = _fleet()

    hosts = [_ask(fleet, f"t{n}", "agent-1", conversation=f"c{n}")[-1] for n in range(4)]

    assert hosts == ["a"] * 4


def test_a_conversation_moves_when_its_host_is_lost_and_so_do_those_who_wait_there() -> None:
    fleet = _fleet()
    _ask(fleet, "r1", conversation="f")
    _ask(fleet, "r2", conversation="f")

    assert _told(fleet.seen(_sight(A, is_healthy=False), AT)) == "r2>b"
    assert _ask(fleet, "r3", conversation="f") == "r3#1"
    assert _end(fleet, "r1") == ""
    assert fleet.leases.hosts()[next(iter(fleet.leases.hosts()))] == B


def test_a_host_that_nobody_looks_at_any_more_is_not_used() -> None:
    fleet = _fleet()

    assert _ask(fleet, "r1", at=AT + BELIEVED_FOR) == "r1!no_host"


def test_who_found_a_host_dead_goes_elsewhere_and_spares_others_that() -> None:
    fleet = _fleet()
    assert _ask(fleet, "r1", conversation="f") == "r1>a"
    _end(fleet, "r1")

    assert _ask(fleet, "r1", conversation="f", tried=(A,), at=AT + 1) == "r1>b"
    assert _ask(fleet, "r2", at=AT + 1) == "r2#1"
    assert _ask(fleet, "r3", tried=(A, B, LOCAL), at=AT + 1) == "r3!no_host"
    assert fleet.seen(_sight(A, AT + 2), Seconds(AT + 2)) == []
    assert _ask(fleet, "r4", at=AT + 2) == "r4>a"


def test_a_look_that_is_newer_than_the_failure_is_believed() -> None:
    fleet = _fleet()

    assert _ask(fleet, "r1", "one", tried=(A,)) == "r1!no_host"
    assert _ask(fleet, "r2", "one") == "r2>a"


# ---- drain, configuration


def test_a_drained_host_gives_its_line_back_and_keeps_what_it_does() -> None:
    fleet = _fleet()
    _ask(fleet, "r1", conversation="f")
    _ask(fleet, "r2", conversation="f")

    assert _told(fleet.drain(A, AT)) == "r2>b"
    assert _ask(fleet, "r3") == "r3#1"
    fleet.undrain(A)
    _end(fleet, "r1")
    assert _ask(fleet, "r4", conversation="g") == "r4>a"


def test_this_box_can_be_drained_too() -> None:
    fleet = _fleet()
    assert _ask(fleet, "r1", "home") == "r1>local"

    assert fleet.drain(LOCAL, AT) == []

    assert _ask(fleet, "r2", "home") == "r2>a"


def test_more_slots_are_handed_out_at_once_and_a_host_that_is_gone_gives_all_back() -> None:
    fleet = _fleet()
    for request in ("r1", "r2"):
        _ask(fleet, request, "one")

    assert _told(fleet.configure(replace(SPEC, hosts={A: _host(A, 2)}), AT)) == "r2>a"
    assert _ask(fleet, "r3", "one") == "r3#1"
    assert fleet.drain(A, AT) != []
    assert fleet.configure(replace(SPEC, hosts={}, routes={}), AT) == []
    assert (fleet.sights, fleet.draining) == ({}, set())
    assert _ask(fleet, "r4", "one") == "r4!route_not_found"
    assert fleet.seen(_sight(A), AT) == []


def test_a_model_that_a_host_may_not_serve_any_more_falls_back_to_one_at_a_time() -> None:
    fleet = _fleet(spec=replace(SPEC, hosts={A: _host(A, 0, 2)}))
    assert _ask(fleet, "r1", "one") == "r1#1"
    bare = replace(_host(A), models={})

    assert _told(fleet.configure(replace(SPEC, hosts={A: bare}), AT)) == "r1>a"
    assert fleet.configure(replace(SPEC, hosts={A: bare}), AT) == []


def test_a_host_that_is_gone_from_a_route_is_told_of() -> None:
    fleet = _fleet()
    fleet.configure(replace(SPEC, hosts={B: _host(B)}), AT)

    (said,) = fleet.ask(_wish("r1", "one"), AT)

    assert isinstance(said, Fails)
    assert "a is not known" in said.refusal.message


# ---- this box, peers


def test_a_request_for_this_box_goes_by_its_line() -> None:
    fleet = _fleet()
    _ask(fleet, "r1", "home")
    _ask(fleet, "r2", "one")

    assert fleet.goes_by_line(RequestId("r1"))
    assert not fleet.goes_by_line(RequestId("r2"))
    assert not fleet.goes_by_line(RequestId("unknown"))
    assert fleet.counts(W1) == (0, 1)


def test_a_peer_that_has_the_model_stands_in_for_hosts() -> None:
    fleet = _fleet()
    fleet.drain(A, AT)

    assert _ask(fleet, "r1", "far") == "r1>far"
    assert _ask(fleet, "r2", "far", tried=(FAR,)) == "r2!no_host"
    assert _ask(fleet, "r3", "far", model=ModelId("x")) == "r3!no_host"
    assert _end(fleet, "r1") == ""


# ---- the context guard


def test_a_prompt_that_fits_no_slot_takes_none() -> None:
    fleet = _fleet()
    fleet.seen(_sight(A, contexts={CHAT: 100}), AT)

    assert _ask(fleet, "r1", "one", tokens=100) == "r1!context_length_exceeded"
    assert _ask(fleet, "r2", "agent-1", tokens=100) == "r2!context_length_exceeded"
    assert fleet.limiter.in_flight(A, CHAT) == 0
    assert _ask(fleet, "r3", "one", tokens=100, is_control=True) == "r3>a"
    assert _ask(fleet, "r4", "one", tokens=99) == "r4>a"
    assert _ask(fleet, "r5", "home", tokens=10**6) == "r5!context_length_exceeded"
    assert _ask(fleet, "r6", "home", tokens=999) == "r6>local"
    assert _ask(fleet, "r7", "home", tokens=10**6, model=ModelId("code")) == "r7>local"


def test_who_could_count_it_is_told_where_an_estimate_may_be_wrong() -> None:
    fleet = _fleet()
    fleet.seen(_sight(A, contexts={CHAT: 100}), AT)

    def count_at(request: str, tokens: int, *, is_counted: bool = False) -> HostName | None:
        wish = _wish(request, "one", tokens=tokens, is_counted=is_counted)
        (said,) = fleet.ask(wish, AT)
        assert isinstance(said, Fails)
        return said.count_at

    assert (count_at("r1", 100), count_at("r1", 199), count_at("r1", 200)) == (A, A, None)
    assert count_at("r1", 100, is_counted=True) is None
    assert _ask(fleet, "r1", "one", tokens=99, is_counted=True) == "r1>a"


# ---- time


def test_before_the_first_look_a_request_waits_for_it() -> None:
    fleet = _fleet(A)

    assert _ask(fleet, "r1") == _ask(fleet, "r1") == ""
    assert fleet.counts(W1) == (1, 0)
    assert fleet.due() == AT + 3
    assert _told(fleet.seen(_sight(B), AT)) == "r1>a"
    assert fleet.due() is None


def test_a_look_that_takes_too_long_is_not_waited_for() -> None:
    fleet = _fleet(A)
    _ask(fleet, "r1")

    assert fleet.work(Seconds(AT + 2)) == []
    assert _told(fleet.work(Seconds(AT + 3))) == "r1>a"
    assert _ask(fleet, "r2", at=AT + 3) == "r2#1"


def test_a_wait_ends_when_its_client_said() -> None:
    fleet = _fleet()
    _ask(fleet, "r1", "one", timeout=Seconds(1.0))
    _ask(fleet, "r2", "one", timeout=Seconds(5.0))

    assert fleet.due() == AT + 5
    assert fleet.work(Seconds(AT + 4)) == []
    assert _told(fleet.work(Seconds(AT + 5))) == "r2!wait_timeout"
    assert fleet.counts(W1) == (0, 1)
    assert fleet.due() is None


def test_quiet_leases_expire() -> None:
    fleet = _fleet()
    _ask(fleet, "r1", conversation="f")
    _end(fleet, "r1")

    assert fleet.due() == AT + 1800
    assert fleet.work(Seconds(AT + 1800)) == []
    assert fleet.leases.hosts() == {}


# ---- workers


def test_what_a_lost_worker_had_is_given_to_others() -> None:
    fleet = _fleet()
    _ask(fleet, "r1", "one")
    _ask(fleet, "r2", "one", worker=W2)

    assert _told(fleet.lost(W1, AT)) == "r2>a"
    assert fleet.counts(W2) == (0, 1)
    assert fleet.lost(W2, AT) == []


def test_a_worker_that_greets_again_is_believed() -> None:
    fleet = _fleet()
    for request in ("r1", "r2"):
        _ask(fleet, request, "one")

    said = fleet.greeted(W1, [(_wish("r2", "one"), A)], [_wish("r3", "one")], AT)

    assert _told(said) == "r2>a, r3#1"


HELD = {
    "at a host": ("one", A, False, 1),
    "a control call": ("one", A, True, 0),
    "at this box": ("home", LOCAL, False, 0),
    "at a peer": ("far", FAR, False, 0),
    "of a route that is gone": ("gone", A, False, 0),
}


@pytest.mark.parametrize("case", HELD)
def test_what_a_former_life_granted_counts_in_this_one(case: str) -> None:
    route, host, is_control, in_flight = HELD[case]
    fleet = _fleet()
    wish = _wish("r1", route, conversation="f", is_control=is_control)

    assert fleet.greeted(W1, [(wish, host)], [], AT) == []

    assert fleet.knows(wish.request)
    assert fleet.limiter.in_flight(A, CHAT) == in_flight
    assert _end(fleet, "r1") == ""


def test_a_deadline_of_a_former_try_ends_no_later_one() -> None:
    fleet = _fleet()
    _ask(fleet, "r0", "one")
    _ask(fleet, "r1", "one", timeout=Seconds(5.0))
    _end(fleet, "r1")

    assert _ask(fleet, "r1", "one", at=AT + 3, timeout=Seconds(5.0)) == "r1#1"
    assert fleet.work(Seconds(AT + 5)) == []
    assert _told(fleet.work(Seconds(AT + 8))) == "r1!wait_timeout"


def test_who_has_gone_to_a_host_meets_no_deadline() -> None:
    fleet = _fleet()
    _ask(fleet, "r1", "one", timeout=Seconds(1.0))
    _ask(fleet, "r2", "home", timeout=Seconds(1.0))
    _end(fleet, "r2")

    assert fleet.work(Seconds(AT + 1)) == []


def test_who_is_refused_for_now_is_told_when_to_come_again() -> None:
    fleet = _fleet()
    for request in ("r1", "r2"):
        _ask(fleet, request, "one")
    (full,) = fleet.ask(_wish("r3", "one"), AT)
    fleet.drain(A, AT)
    (nowhere,) = fleet.ask(_wish("r4", "one"), AT)

    assert isinstance(full, Fails)
    assert isinstance(nowhere, Fails)
    assert full.refusal.retry_after == nowhere.refusal.retry_after == 2.0


# ---- who waits when the configuration changes


def test_nobody_who_waits_for_a_host_is_sent_there_when_it_is_gone() -> None:
    fleet = _fleet(spec=replace(SPEC, hosts={A: _host(A, 0, 2), B: _host(B)}))
    assert _ask(fleet, "r1", "one") == "r1#1"

    assert _told(fleet.configure(replace(SPEC, hosts={B: _host(B)}), AT)) == "r1!no_host"


def test_who_waits_for_a_host_that_his_route_has_no_longer_goes_elsewhere() -> None:
    fleet = _fleet(spec=replace(SPEC, hosts={A: _host(A, 1, 9), B: _host(B)}))
    _ask(fleet, "r1", "one")
    assert _ask(fleet, "r2", conversation="f", tried=(B,)) == "r2#1"
    fleet.seen(_sight(B, AT + 1), Seconds(AT + 1))
    assert _ask(fleet, "r3", "one", at=AT + 1) == "r3#2"
    by_b = {**SPEC.routes, RouteName("r"): _route("r", B)}
    spec = replace(SPEC, hosts={A: _host(A, 1, 9), B: _host(B)}, routes=by_b)

    assert _told(fleet.configure(spec, Seconds(AT + 1))) == "r2!no_host, r3#1"


def test_who_waits_by_a_route_that_is_gone_is_told() -> None:
    fleet = _fleet()
    for request in ("r1", "r2"):
        _ask(fleet, request, "one")
    rest = {name: route for name, route in SPEC.routes.items() if name != "one"}

    assert _told(fleet.configure(replace(SPEC, routes=rest), AT)) == "r2!route_not_found"


def test_who_waits_for_a_model_that_a_host_has_no_longer_goes_where_it_is() -> None:
    fleet = _fleet()
    fleet.seen(_sight(A, loaded=frozenset()), AT)
    fleet.seen(_sight(B, is_healthy=False), AT)
    for request in ("r1", "r2"):
        _ask(fleet, request)
    fleet.seen(_sight(B), AT)
    spec = replace(SPEC, hosts={A: replace(_host(A), models={}), B: _host(B)})

    assert _told(fleet.configure(spec, AT)) == "r2>b"


def test_a_conversation_moves_when_its_host_has_its_model_no_longer_and_another_has() -> None:
    fleet = _fleet()
    fleet.seen(_sight(B, is_healthy=False), AT)
    _ask(fleet, "r1", conversation="f")
    _end(fleet, "r1")
    fleet.seen(_sight(A, loaded=frozenset()), AT)
    fleet.configure(replace(SPEC, hosts={A: replace(_host(A), models={}), B: _host(B)}), AT)

    assert _ask(fleet, "r2", conversation="f") == "r2>a"
    _end(fleet, "r2")
    fleet.seen(_sight(B), AT)
    assert _ask(fleet, "r3", conversation="f") == "r3>b"


def test_a_request_waits_for_the_first_look_at_a_new_host_if_there_is_no_other() -> None:
    fleet = _fleet(A, spec=replace(SPEC, hosts={A: _host(A)}))
    late = Seconds(AT + 50)
    fleet.seen(_sight(A, late), late)
    fleet.configure(SPEC, late)

    assert _ask(fleet, "r1", at=late) == "r1>a"
    assert _ask(fleet, "r2", at=late, tried=(A,)) == ""
    assert fleet.due() == late + 3
    assert _told(fleet.seen(_sight(B, late), late)) == "r2>b"


def test_a_new_host_that_cannot_be_looked_at_is_not_waited_for() -> None:
    fleet = _fleet(A, spec=replace(SPEC, hosts={A: _host(A)}))
    late = Seconds(AT + 50)
    fleet.configure(SPEC, late)

    assert _ask(fleet, "r1", at=late) == ""
    assert fleet.work(Seconds(late + 2)) == []
    assert _told(fleet.work(Seconds(late + 3))) == "r1!no_host"
