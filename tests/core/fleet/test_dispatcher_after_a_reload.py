"""Who waits for a host when the configuration changes, and who comes then."""

from dataclasses import replace

from qmsup.ids import RouteName
from qmsup.units import Seconds
from tests.support.fleet import (
    AT,
    SPEC,
    A,
    B,
    ask,
    end,
    fleet_of,
    host_of,
    route_of,
    sight_of,
    told,
)


def test_nobody_who_waits_for_a_host_is_sent_there_when_it_is_gone() -> None:
    fleet = fleet_of(spec=replace(SPEC, hosts={A: host_of(A, 0, 2), B: host_of(B)}))
    assert ask(fleet, "r1", "one") == "r1#1"

    assert told(fleet.configure(replace(SPEC, hosts={B: host_of(B)}), AT)) == "r1!no_host"


def test_who_waits_for_a_host_that_his_route_has_no_longer_goes_elsewhere() -> None:
    fleet = fleet_of(spec=replace(SPEC, hosts={A: host_of(A, 1, 9), B: host_of(B)}))
    ask(fleet, "r1", "one")
    assert ask(fleet, "r2", conversation="f", tried=(B,)) == "r2#1"
    fleet.seen(sight_of(B, AT + 1), Seconds(AT + 1))
    assert ask(fleet, "r3", "one", at=AT + 1) == "r3#2"
    by_b = {**SPEC.routes, RouteName("r"): route_of("r", B)}
    spec = replace(SPEC, hosts={A: host_of(A, 1, 9), B: host_of(B)}, routes=by_b)

    assert told(fleet.configure(spec, Seconds(AT + 1))) == "r2!no_host, r3#1"


def test_who_waits_by_a_route_that_is_gone_is_told() -> None:
    fleet = fleet_of()
    for request in ("r1", "r2"):
        ask(fleet, request, "one")
    rest = {name: route for name, route in SPEC.routes.items() if name != "one"}

    assert told(fleet.configure(replace(SPEC, routes=rest), AT)) == "r2!route_not_found"


def test_who_waits_for_a_model_that_a_host_has_no_longer_goes_where_it_is() -> None:
    fleet = fleet_of()
    fleet.seen(sight_of(A, loaded=frozenset()), AT)
    fleet.seen(sight_of(B, is_healthy=False), AT)
    for request in ("r1", "r2"):
        ask(fleet, request)
    fleet.seen(sight_of(B), AT)
    spec = replace(SPEC, hosts={A: replace(host_of(A), models={}), B: host_of(B)})

    assert told(fleet.configure(spec, AT)) == "r2>b"


def test_a_conversation_moves_when_its_host_has_its_model_no_longer_and_another_has() -> None:
    fleet = fleet_of()
    fleet.seen(sight_of(B, is_healthy=False), AT)
    ask(fleet, "r1", conversation="f")
    end(fleet, "r1")
    fleet.seen(sight_of(A, loaded=frozenset()), AT)
    fleet.configure(replace(SPEC, hosts={A: replace(host_of(A), models={}), B: host_of(B)}), AT)

    assert ask(fleet, "r2", conversation="f") == "r2>a"
    end(fleet, "r2")
    fleet.seen(sight_of(B), AT)
    assert ask(fleet, "r3", conversation="f") == "r3>b"


def test_a_request_waits_for_the_first_look_at_a_new_host_if_there_is_no_other() -> None:
    fleet = fleet_of(A, spec=replace(SPEC, hosts={A: host_of(A)}))
    late = Seconds(AT + 50)
    fleet.seen(sight_of(A, late), late)
    fleet.configure(SPEC, late)

    assert ask(fleet, "r1", at=late) == "r1>a"
    assert ask(fleet, "r2", at=late, tried=(A,)) == ""
    assert fleet.due() == late + 3
    assert told(fleet.seen(sight_of(B, late), late)) == "r2>b"


def test_a_new_host_that_cannot_be_looked_at_is_not_waited_for() -> None:
    fleet = fleet_of(A, spec=replace(SPEC, hosts={A: host_of(A)}))
    late = Seconds(AT + 50)
    fleet.configure(SPEC, late)

    assert ask(fleet, "r1", at=late) == ""
    assert fleet.work(Seconds(late + 2)) == []
    assert told(fleet.work(Seconds(late + 3))) == "r1!no_host"
