"""Which host each request of a route goes to, told as stories: what happens on the left, what is said on the right."""

from dataclasses import replace

import pytest

from qmsup.core.fleet.sights import BELIEVED_FOR
from qmsup.core.fleet.wishes import Fails, Goes
from qmsup.ids import HostName, ModelId, RequestId
from qmsup.spec import LOCAL
from qmsup.units import Seconds
from tests.support.fleet import (
    AT,
    CHAT,
    FAR,
    SPEC,
    W1,
    W2,
    A,
    B,
    ask,
    end,
    fleet_of,
    host_of,
    sight_of,
    told,
    wish_of,
)

# ---- slots and lines


def test_a_host_serves_what_it_takes_then_others_wait_and_then_they_are_refused() -> None:
    fleet = fleet_of()

    assert ask(fleet, "r1", "one") == "r1>a"
    assert ask(fleet, "r2", "one") == "r2#1"
    assert ask(fleet, "r3", "one") == "r3!queue_full"
    assert not fleet.knows(RequestId("r3"))
    assert fleet.worker_of(RequestId("r3")) is None
    assert fleet.worker_of(RequestId("r2")) == W1
    assert end(fleet, "r1", AT + 4) == "r2>a"
    assert end(fleet, "r1") == ""
    assert end(fleet, "r2") == ""


def test_who_waited_is_told_how_long_and_others_how_they_stand() -> None:
    fleet = fleet_of(spec=replace(SPEC, hosts={A: host_of(A, queue_max=3)}))
    for request in ("r1", "r2", "r3", "r4"):
        ask(fleet, request, "one")

    said = fleet.end(RequestId("r1"), Seconds(AT + 4))

    assert told(said) == "r2>a, r3#1, r4#2"
    assert isinstance(said[0], Goes)
    assert said[0].waited == 4.0
    assert end(fleet, "r3") == "r4#1"


def test_asking_again_tells_the_same() -> None:
    fleet = fleet_of()
    ask(fleet, "r1", "one")
    ask(fleet, "r2", "one")

    assert ask(fleet, "r1", "one") == "r1>a"
    assert ask(fleet, "r2", "one") == "r2#1"


def test_a_route_that_does_not_queue_is_counted_and_keeps_others_out() -> None:
    fleet = fleet_of()

    assert [ask(fleet, f"t{n}", "agent-7") for n in range(3)] == ["t0>a", "t1>a", "t2>a"]
    assert fleet.limiter.in_flight(A, CHAT) == 3
    assert ask(fleet, "r1", "one") == "r1#1"
    assert ask(fleet, "r2") == "r2>b"


def test_control_calls_take_no_slot_and_go_where_their_conversation_is() -> None:
    fleet = fleet_of()
    ask(fleet, "r1", conversation="f")
    ask(fleet, "r2", conversation="g")

    assert ask(fleet, "c1", conversation="g", is_control=True) == "c1>b"
    assert end(fleet, "c1") == ""
    assert fleet.limiter.in_flight(B, CHAT) == 1


# ---- leases


def test_a_conversation_keeps_its_host_though_another_is_freer() -> None:
    fleet = fleet_of()
    ask(fleet, "r1", conversation="f")
    end(fleet, "r1")
    ask(fleet, "r2")

    assert ask(fleet, "r3", conversation="f") == "r3#1"


def test_all_of_a_route_may_share_one_host() -> None:
    fleet = fleet_of()

    hosts = [ask(fleet, f"t{n}", "agent-1", conversation=f"c{n}")[-1] for n in range(4)]

    assert hosts == ["a"] * 4


def test_a_conversation_moves_when_its_host_is_lost_and_so_do_those_who_wait_there() -> None:
    fleet = fleet_of()
    ask(fleet, "r1", conversation="f")
    ask(fleet, "r2", conversation="f")

    assert told(fleet.seen(sight_of(A, is_healthy=False), AT)) == "r2>b"
    assert ask(fleet, "r3", conversation="f") == "r3#1"
    assert end(fleet, "r1") == ""
    assert fleet.leases.hosts()[next(iter(fleet.leases.hosts()))] == B


def test_a_host_that_nobody_looks_at_any_more_is_not_used() -> None:
    fleet = fleet_of()

    assert ask(fleet, "r1", at=AT + BELIEVED_FOR) == "r1!no_host"


def test_who_found_a_host_dead_goes_elsewhere_and_spares_others_that() -> None:
    fleet = fleet_of()
    assert ask(fleet, "r1", conversation="f") == "r1>a"
    end(fleet, "r1")

    assert ask(fleet, "r1", conversation="f", tried=(A,), at=AT + 1) == "r1>b"
    assert ask(fleet, "r2", at=AT + 1) == "r2#1"
    assert ask(fleet, "r3", tried=(A, B, LOCAL), at=AT + 1) == "r3!no_host"
    assert fleet.seen(sight_of(A, AT + 2), Seconds(AT + 2)) == []
    assert ask(fleet, "r4", at=AT + 2) == "r4>a"


def test_a_look_that_is_newer_than_the_failure_is_believed() -> None:
    fleet = fleet_of()

    assert ask(fleet, "r1", "one", tried=(A,)) == "r1!no_host"
    assert ask(fleet, "r2", "one") == "r2>a"


# ---- drain, configuration


def test_a_drained_host_gives_its_line_back_and_keeps_what_it_does() -> None:
    fleet = fleet_of()
    ask(fleet, "r1", conversation="f")
    ask(fleet, "r2", conversation="f")

    assert told(fleet.drain(A, AT)) == "r2>b"
    assert ask(fleet, "r3") == "r3#1"
    fleet.undrain(A)
    end(fleet, "r1")
    assert ask(fleet, "r4", conversation="g") == "r4>a"


def test_this_box_can_be_drained_too() -> None:
    fleet = fleet_of()
    assert ask(fleet, "r1", "home") == "r1>local"

    assert fleet.drain(LOCAL, AT) == []

    assert ask(fleet, "r2", "home") == "r2>a"


def test_more_slots_are_handed_out_at_once_and_a_host_that_is_gone_gives_all_back() -> None:
    fleet = fleet_of()
    for request in ("r1", "r2"):
        ask(fleet, request, "one")

    assert told(fleet.configure(replace(SPEC, hosts={A: host_of(A, 2)}), AT)) == "r2>a"
    assert ask(fleet, "r3", "one") == "r3#1"
    assert fleet.drain(A, AT) != []
    assert fleet.configure(replace(SPEC, hosts={}, routes={}), AT) == []
    assert (fleet.sights, fleet.draining) == ({}, set())
    assert ask(fleet, "r4", "one") == "r4!route_not_found"
    assert fleet.seen(sight_of(A), AT) == []


def test_a_model_that_a_host_may_not_serve_any_more_falls_back_to_one_at_a_time() -> None:
    fleet = fleet_of(spec=replace(SPEC, hosts={A: host_of(A, 0, 2)}))
    assert ask(fleet, "r1", "one") == "r1#1"
    bare = replace(host_of(A), models={})

    assert told(fleet.configure(replace(SPEC, hosts={A: bare}), AT)) == "r1>a"
    assert fleet.configure(replace(SPEC, hosts={A: bare}), AT) == []


def test_a_host_that_is_gone_from_a_route_is_told_of() -> None:
    fleet = fleet_of()
    fleet.configure(replace(SPEC, hosts={B: host_of(B)}), AT)

    (said,) = fleet.ask(wish_of("r1", "one"), AT)

    assert isinstance(said, Fails)
    assert "a is not known" in said.refusal.message


# ---- this box, peers


def test_a_request_for_this_box_goes_by_its_line() -> None:
    fleet = fleet_of()
    ask(fleet, "r1", "home")
    ask(fleet, "r2", "one")

    assert fleet.goes_by_line(RequestId("r1"))
    assert not fleet.goes_by_line(RequestId("r2"))
    assert not fleet.goes_by_line(RequestId("unknown"))
    assert fleet.counts(W1) == (0, 1)


def test_a_peer_that_has_the_model_stands_in_for_hosts() -> None:
    fleet = fleet_of()
    fleet.drain(A, AT)

    assert ask(fleet, "r1", "far") == "r1>far"
    assert ask(fleet, "r2", "far", tried=(FAR,)) == "r2!no_host"
    assert ask(fleet, "r3", "far", model=ModelId("x")) == "r3!no_host"
    assert end(fleet, "r1") == ""


# ---- the context guard


def test_a_prompt_that_fits_no_slot_takes_none() -> None:
    fleet = fleet_of()
    fleet.seen(sight_of(A, contexts={CHAT: 100}), AT)

    assert ask(fleet, "r1", "one", tokens=100) == "r1!context_length_exceeded"
    assert ask(fleet, "r2", "agent-1", tokens=100) == "r2!context_length_exceeded"
    assert fleet.limiter.in_flight(A, CHAT) == 0
    assert ask(fleet, "r3", "one", tokens=100, is_control=True) == "r3>a"
    assert ask(fleet, "r4", "one", tokens=99) == "r4>a"
    assert ask(fleet, "r5", "home", tokens=10**6) == "r5!context_length_exceeded"
    assert ask(fleet, "r6", "home", tokens=999) == "r6>local"
    assert ask(fleet, "r7", "home", tokens=10**6, model=ModelId("code")) == "r7>local"


def test_who_could_count_it_is_told_where_an_estimate_may_be_wrong() -> None:
    fleet = fleet_of()
    fleet.seen(sight_of(A, contexts={CHAT: 100}), AT)

    def count_at(request: str, tokens: int, *, is_counted: bool = False) -> HostName | None:
        wish = wish_of(request, "one", tokens=tokens, is_counted=is_counted)
        (said,) = fleet.ask(wish, AT)
        assert isinstance(said, Fails)
        return said.count_at

    assert (count_at("r1", 100), count_at("r1", 199), count_at("r1", 200)) == (A, A, None)
    assert count_at("r1", 100, is_counted=True) is None
    assert ask(fleet, "r1", "one", tokens=99, is_counted=True) == "r1>a"


# ---- time


def test_before_the_first_look_a_request_waits_for_it() -> None:
    fleet = fleet_of(A)

    assert ask(fleet, "r1") == ask(fleet, "r1") == ""
    assert fleet.counts(W1) == (1, 0)
    assert fleet.due() == AT + 3
    assert told(fleet.seen(sight_of(B), AT)) == "r1>a"
    assert fleet.due() is None


def test_a_look_that_takes_too_long_is_not_waited_for() -> None:
    fleet = fleet_of(A)
    ask(fleet, "r1")

    assert fleet.work(Seconds(AT + 2)) == []
    assert told(fleet.work(Seconds(AT + 3))) == "r1>a"
    assert ask(fleet, "r2", at=AT + 3) == "r2#1"


def test_a_wait_ends_when_its_client_said() -> None:
    fleet = fleet_of()
    ask(fleet, "r1", "one", timeout=Seconds(1.0))
    ask(fleet, "r2", "one", timeout=Seconds(5.0))

    assert fleet.due() == AT + 5
    assert fleet.work(Seconds(AT + 4)) == []
    assert told(fleet.work(Seconds(AT + 5))) == "r2!wait_timeout"
    assert fleet.counts(W1) == (0, 1)
    assert fleet.due() is None


def test_quiet_leases_expire() -> None:
    fleet = fleet_of()
    ask(fleet, "r1", conversation="f")
    end(fleet, "r1")

    assert fleet.due() == AT + 1800
    assert fleet.work(Seconds(AT + 1800)) == []
    assert fleet.leases.hosts() == {}


# ---- workers


def test_what_a_lost_worker_had_is_given_to_others() -> None:
    fleet = fleet_of()
    ask(fleet, "r1", "one")
    ask(fleet, "r2", "one", worker=W2)

    assert told(fleet.lost(W1, AT)) == "r2>a"
    assert fleet.counts(W2) == (0, 1)
    assert fleet.lost(W2, AT) == []


def test_a_worker_that_greets_again_is_believed() -> None:
    fleet = fleet_of()
    for request in ("r1", "r2"):
        ask(fleet, request, "one")

    said = fleet.greeted(W1, [(wish_of("r2", "one"), A)], [wish_of("r3", "one")], AT)

    assert told(said) == "r2>a, r3#1"


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
    fleet = fleet_of()
    wish = wish_of("r1", route, conversation="f", is_control=is_control)

    assert fleet.greeted(W1, [(wish, host)], [], AT) == []

    assert fleet.knows(wish.request)
    assert fleet.limiter.in_flight(A, CHAT) == in_flight
    assert end(fleet, "r1") == ""


def test_a_deadline_of_a_former_try_ends_no_later_one() -> None:
    fleet = fleet_of()
    ask(fleet, "r0", "one")
    ask(fleet, "r1", "one", timeout=Seconds(5.0))
    end(fleet, "r1")

    assert ask(fleet, "r1", "one", at=AT + 3, timeout=Seconds(5.0)) == "r1#1"
    assert fleet.work(Seconds(AT + 5)) == []
    assert told(fleet.work(Seconds(AT + 8))) == "r1!wait_timeout"


def test_who_has_gone_to_a_host_meets_no_deadline() -> None:
    fleet = fleet_of()
    ask(fleet, "r1", "one", timeout=Seconds(1.0))
    ask(fleet, "r2", "home", timeout=Seconds(1.0))
    end(fleet, "r2")

    assert fleet.work(Seconds(AT + 1)) == []


def test_who_is_refused_for_now_is_told_when_to_come_again() -> None:
    fleet = fleet_of()
    for request in ("r1", "r2"):
        ask(fleet, request, "one")
    (full,) = fleet.ask(wish_of("r3", "one"), AT)
    fleet.drain(A, AT)
    (nowhere,) = fleet.ask(wish_of("r4", "one"), AT)

    assert isinstance(full, Fails)
    assert isinstance(nowhere, Fails)
    assert full.refusal.retry_after == nowhere.refusal.retry_after == 2.0
