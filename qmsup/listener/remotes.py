"""Servers on other machines, as a listener speaks to them, and the models of peers that it shows."""

from collections.abc import Container

from qmsup.ids import HostName, ListenerName, ModelId, RouteName
from qmsup.listener.relay.order import Remote
from qmsup.listener.relay.secured import Tls
from qmsup.spec import HostSpec, ModelSpec, PeerSpec, Spec

_TEMPLATES = frozenset("*?[")


def remotes_of(spec: Spec) -> dict[HostName, Remote]:
    """Every host and every peer of the configuration."""
    hosts = {
        name: Remote(
            name=name,
            upstream=host.upstream,
            tls=_tls(host),
            lines=_key_lines(host.api_key),
        )
        for name, host in spec.hosts.items()
    }
    peers = {
        name: Remote(
            name=name,
            upstream=peer.upstream,
            tls=_tls(peer),
            path=peer.path.encode(),
            lines=_key_lines(peer.api_key),
            connect_within=peer.connect_timeout,
            answer_within=peer.answer_timeout,
        )
        for name, peer in spec.peers.items()
    }
    return hosts | peers


def peers_shown(spec: Spec, listener: ListenerName) -> dict[ModelId, tuple[ModelSpec, Remote]]:
    """The models that a listener relays to peers. One that is configured here, shown or not, is never among them.

    A listener with groups shows these groups, so nothing of peers.
    """
    if spec.listeners[listener].groups is not None:
        return {}
    remotes = remotes_of(spec)
    shown = {
        model: (ModelSpec(id=model, argv=(), filters=peer.filters), remotes[name])
        for name, peer in spec.peers.items()
        for model in peer.models
        if spec.model_named(model) is None
    }
    # PEER/MODEL is always that peer's, even where the model is one of ours, too.
    for name, peer in spec.peers.items():
        for model in peer.models:
            full = ModelId(f"{name}/{model}")
            if full not in shown and spec.model_named(full) is None:
                described = ModelSpec(
                    id=full, argv=(), filters=peer.filters, use_model_name=model, unlisted=True
                )
                shown[full] = (described, remotes[name])
    return shown


def routes_named(
    spec: Spec, listener: ListenerName, taken: Container[str]
) -> dict[RouteName, ModelId]:
    """The routes that a client can use as it uses a model, and the model that each stands for.

    That takes a name of its own, which is no template, and a model to stand for.

    Args:
        spec: the configuration.
        listener: whose port it is.
        taken: names of models, which go before.
    """
    serves = spec.listeners[listener].serves
    named: dict[RouteName, ModelId] = {}
    for name, route in spec.routes.items():
        is_shown = serves(name) and name not in taken
        if is_shown and route.default_model and not _TEMPLATES & set(name):
            found = spec.model_named(route.default_model)
            named[name] = ModelId(route.default_model) if found is None else found.id
    return named


def _tls(server: HostSpec | PeerSpec) -> Tls | None:
    if server.trust is None:
        return None
    return Tls(server.upstream.rpartition(":")[0].strip("[]"), server.trust)


def _key_lines(key: str) -> bytes:
    # OpenAI's clients and servers use the one, Anthropic's the other.
    return f"Authorization: Bearer {key}\r\nX-Api-Key: {key}\r\n".encode() if key else b""
