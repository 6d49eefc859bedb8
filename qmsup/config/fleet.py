"""`peers:`, `hosts:` and `routes:`: what they mean together, and what is wrong with them."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from qmsup.config.addresses import clash
from qmsup.config.fleet_shape import HostSection, PeerFiltersSection, PeerSection, RouteSection
from qmsup.config.problems import Path, Problems, did_you_mean, shown
from qmsup.config.remote import EXAMPLE, parse_remote, trusted
from qmsup.config.shape import Shape
from qmsup.errors import key_text
from qmsup.ids import HostName, ListenerName, ModelId, RouteName
from qmsup.spec import (
    LOCAL,
    Affinity,
    FilterSpec,
    HostSpec,
    ListenerSpec,
    PeerSpec,
    RouteSpec,
    SlotsSpec,
)
from qmsup.units import Seconds

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_ROUTE_NAME = re.compile(r"[A-Za-z0-9_.*?\[\]!-]{1,64}")
_KEY = re.compile(r"[!-~]*")
_NAME_RULE = "a name here is letters, digits, - _ or . (at most 64); rename it"


def resolve_peers(shape: Shape, problems: Problems) -> dict[HostName, PeerSpec]:
    """Every peer, in the order of the file."""
    for name in shape.peers:
        if not _NAME.fullmatch(name) or name == LOCAL:
            text = "local is this box; rename it" if name == LOCAL else _NAME_RULE
            problems.add(("peers", name), text)
    _check_owners(shape.peers, problems)
    return {HostName(name): _peer(name, section, problems) for name, section in shape.peers.items()}


def resolve_hosts(shape: Shape, problems: Problems) -> dict[HostName, HostSpec]:
    """Every host, in the order of the file."""
    for name in shape.hosts:
        path: Path = ("hosts", name)
        if name == LOCAL:
            problems.add(path, "local is this box, and needs no entry; rename it")
        elif not _NAME.fullmatch(name):
            problems.add(path, _NAME_RULE)
        elif name in shape.peers:
            text = "is the name of a peer too; rename one of them, X-QM-Host tells them apart"
            problems.add(path, text)
    return {HostName(name): _host(name, section, problems) for name, section in shape.hosts.items()}


def resolve_routes(shape: Shape, problems: Problems) -> dict[RouteName, RouteSpec]:
    """Every route, in the order of the file, which decides between templates."""
    return {
        RouteName(name): _route(name, section, shape, problems)
        for name, section in shape.routes.items()
    }


def with_routes(
    listeners: Mapping[ListenerName, ListenerSpec], shape: Shape, problems: Problems
) -> dict[ListenerName, ListenerSpec]:
    """The listeners, each with the routes it serves."""
    told = dict(listeners)
    for name, section in shape.listeners.items():
        if section.routes is None:
            continue
        path: Path = ("listeners", name, "routes")
        _check_known(section.routes, shape.routes, path, "route", problems)
        listener = ListenerName(name)
        routes = tuple(RouteName(route) for route in section.routes)
        told[listener] = replace(told[listener], routes=routes)
    return told


def check_own_ports(
    peers: Mapping[HostName, PeerSpec],
    hosts: Mapping[HostName, HostSpec],
    listeners: Mapping[ListenerName, ListenerSpec],
    problems: Problems,
) -> None:
    """Note a peer or host that is one of our own ports: requests would come back for ever."""
    places: list[tuple[Path, str]] = [(("peers", p, "proxy"), s.upstream) for p, s in peers.items()]
    places += [(("hosts", h, "url"), s.upstream) for h, s in hosts.items()]
    for path, upstream in places:
        parts = urlsplit(f"//{upstream}")
        address = (parts.hostname or "", parts.port or 0)
        for listener in listeners.values():
            if address[0] and clash(address, (listener.host, listener.port)):
                hint = "; this box is called local" if path[0] == "hosts" else ""
                text = f"is where listener {listener.name} listens{hint}; write another address"
                problems.follow(path, text)


def _peer(name: str, section: PeerSection, problems: Problems) -> PeerSpec:
    path: Path = ("peers", name)
    upstream, prefix = parse_remote(section.proxy, (*path, "proxy"), problems)
    trust = trusted(section.trust, section.proxy, (*path, "trust"), problems)
    _check_key(section.api_key, (*path, "apiKey"), problems)
    if not section.models:
        problems.follow((*path, "models"), "names no model; list those that the peer is asked for")
    for at, model in enumerate(section.models):
        if not model or not model.isprintable() or model != model.strip():
            text = "a model's name has no line breaks or blanks at its ends, and is not empty"
            problems.follow((*path, "models", at), text)
    return PeerSpec(
        name=HostName(name),
        upstream=upstream,
        trust=trust,
        path=prefix,
        api_key=section.api_key,
        models=tuple(dict.fromkeys(ModelId(model) for model in section.models)),
        filters=_filters(section.filters, (*path, "filters"), problems),
        connect_timeout=Seconds(
            section.timeouts.connect + (0.0 if trust is None else section.timeouts.tls_handshake)
        ),
        answer_timeout=Seconds(section.timeouts.response_header),
    )


def _check_owners(peers: Mapping[str, PeerSection], problems: Problems) -> None:
    owners: dict[str, str] = {}
    for name, section in peers.items():
        for at, model in enumerate(section.models):
            owner = owners.setdefault(model, name)
            if owner != name:
                text = f"peer {owner} lists {key_text(model)} already; keep one"
                problems.follow(("peers", name, "models", at), text)


def _host(name: str, section: HostSection, problems: Problems) -> HostSpec:
    path: Path = ("hosts", name)
    upstream, prefix = parse_remote(section.url, (*path, "url"), problems)
    if prefix:
        problems.follow((*path, "url"), f"holds more than host and port; {EXAMPLE}")
    _check_key(section.api_key, (*path, "apiKey"), problems)
    return HostSpec(
        name=HostName(name),
        upstream=upstream,
        trust=trusted(section.trust, section.url, (*path, "trust"), problems),
        api_key=section.api_key,
        weight=section.weight,
        models={
            ModelId(model): SlotsSpec(parallel=slots.parallel, queue_max=slots.queue_max)
            for model, slots in section.models.items()
        },
    )


def _route(name: str, section: RouteSection, shape: Shape, problems: Problems) -> RouteSpec:
    path: Path = ("routes", name)
    if not _ROUTE_NAME.fullmatch(name):
        text = "a route's name is letters, digits, - _ or ., and * ? [ ] in a template; rename it"
        problems.add(path, text)
    if not section.hosts and not section.peers:
        problems.follow((*path, "hosts"), "names no host; list those it may choose from")
    _check_known(section.hosts, (LOCAL, *shape.hosts), (*path, "hosts"), "host", problems)
    _check_known(section.peers, shape.peers, (*path, "peers"), "peer", problems)
    affinity = Affinity.CONVERSATION
    try:
        affinity = Affinity(section.affinity)
    except ValueError:
        here: Path = (*path, "affinity")
        told = shown(here, section.affinity)
        problems.follow(here, f'must be "conversation" or "route"{told}')
    return RouteSpec(
        name=RouteName(name),
        hosts=tuple(dict.fromkeys(HostName(host) for host in section.hosts)),
        default_model=section.default_model,
        peers=tuple(dict.fromkeys(HostName(peer) for peer in section.peers)),
        affinity=affinity,
        queue=section.queue,
    )


def _check_known(
    written: Sequence[str], known: Iterable[str], path: Path, what: str, problems: Problems
) -> None:
    names = tuple(known)
    for at, name in enumerate(written):
        if name not in names:
            hint = did_you_mean(name, names) or f"; add it under {what}s, or remove it here"
            problems.follow((*path, at), f"there is no {what} {key_text(name)}{hint}")


def _check_key(key: str, path: Path, problems: Problems) -> None:
    if not _KEY.fullmatch(key):
        problems.follow(path, "a key is plain characters without blanks")


def _filters(section: PeerFiltersSection, path: Path, problems: Problems) -> FilterSpec:
    put: dict[str, str] = {}
    for key, value in section.set_params.items():
        here: Path = (*path, "setParams", key)
        if key == "model":
            problems.follow(here, "cannot be set: it is what the peer is asked for")
            continue
        try:
            put[key] = json.dumps(value, allow_nan=False, separators=(",", ":"))
        except ValueError:
            problems.follow(here, "holds a number that JSON cannot; write a finite one")
    stripped = (key.strip() for key in section.strip_params.split(","))
    strip = tuple(dict.fromkeys(key for key in stripped if key and key != "model"))
    return FilterSpec(strip=strip, put=put)
