"""A fleet of two hosts and its routes, told of requests in words: `r1>a` goes to a, `r1#2` stands second there."""

from collections.abc import Iterable
from typing import Any

from qmsup.core.fleet.chooser import HostView
from qmsup.core.fleet.dispatcher import Dispatcher
from qmsup.core.fleet.sights import Sight
from qmsup.core.fleet.wishes import Fails, Goes, Said, Stands, Wish
from qmsup.ids import HostName, ModelId, RequestId, RouteName, WorkerId
from qmsup.spec import LOCAL, Affinity, HostSpec, PeerSpec, RouteSpec, SlotsSpec, Spec
from qmsup.units import Seconds

A, B, FAR = HostName("a"), HostName("b"), HostName("far")
CHAT = ModelId("chat")
W1, W2 = WorkerId("w1"), WorkerId("w2")
AT = Seconds(100.0)


def host_of(name: HostName, parallel: int = 1, queue_max: int = 1) -> HostSpec:
    """A host that serves one model."""
    slots = SlotsSpec(parallel=parallel, queue_max=queue_max)
    return HostSpec(name=name, upstream=f"{name}:80", models={CHAT: slots})


def route_of(name: str, *hosts: HostName, **more: Any) -> RouteSpec:
    """A route to these hosts."""
    return RouteSpec(name=RouteName(name), hosts=hosts, **more)


_ROUTES = (
    route_of("r", A, B),
    route_of("one", A),
    route_of("agent-*", A, B, affinity=Affinity.ROUTE, queue=False),
    route_of("home", LOCAL, A),
    route_of("far", A, peers=(HostName("gone"), HostName("other"), FAR)),
)
SPEC = Spec(
    models={},
    hosts={A: host_of(A), B: host_of(B)},
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


def sight_of(host: HostName, at: float = AT, **more: Any) -> Sight:
    """A look at a host: all is well, and the model is loaded."""
    fields = {"is_healthy": True, "loaded": frozenset({CHAT}), **more}
    return Sight(host=host, at=Seconds(at), **fields)


def fleet_of(*seen: HostName, spec: Spec = SPEC) -> Dispatcher:
    """A dispatcher that has seen these hosts; all of them if none is named."""
    fleet = Dispatcher(spec, _local, AT)
    for host in seen or (A, B):
        assert fleet.seen(sight_of(host), AT) == []
    return fleet


def wish_of(request: str, route: str = "r", **more: Any) -> Wish:
    """What a request wants, if nothing else is said."""
    fields = {"worker": W1, "model": CHAT, **more}
    return Wish(request=RequestId(request), route=RouteName(route), **fields)


def ask(fleet: Dispatcher, request: str, route: str = "r", at: float = AT, **more: Any) -> str:
    """What is said when a request arrives."""
    return told(fleet.ask(wish_of(request, route, **more), Seconds(at)))


def end(fleet: Dispatcher, request: str, at: float = AT) -> str:
    """What is said when it is over."""
    return told(fleet.end(RequestId(request), Seconds(at)))


def told(said: Iterable[Said]) -> str:
    """What was said, in words."""
    return ", ".join(_words(one) for one in said)


def _words(said: Said) -> str:
    match said:
        case Goes(wish=wish, host=host):
            return f"{wish.request}>{host}"
        case Stands(wish=wish, place=place):
            return f"{wish.request}#{place}"
        case Fails(wish=wish, refusal=refusal):
            return f"{wish.request}!{refusal.code}"
