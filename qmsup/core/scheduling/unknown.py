"""Names that no model of this box has: whose they are, and what reads alike."""

from collections.abc import Iterable
from difflib import get_close_matches

from qmsup.core.scheduling.state import State
from qmsup.errors import Code, Refusal
from qmsup.ids import HostName, ModelId, RouteName
from qmsup.spec import Spec


def unknown_model(state: State, name: ModelId) -> Refusal:
    """No such model; says whose it is instead, or names up to three that look alike."""
    return Refusal(
        code=Code.MODEL_NOT_FOUND, message=f"there is no model {str(name)!r}{_hint(state, name)}"
    )


def peer_of(spec: Spec, name: str) -> HostName | None:
    """The peer whose model is called so, as `MODEL` or `PEER/MODEL`; the first of several."""
    return next(
        (
            peer.name
            for peer in spec.peers.values()
            if name in peer.models or name.removeprefix(f"{peer.name}/") in peer.models
        ),
        None,
    )


def near_names(name: str, known: Iterable[str], most: int) -> list[str]:
    """Those of the known names that read like this one, the nearest first; in capitals they do, too."""
    by_lower = {each.lower(): str(each) for each in known}
    return [by_lower[near] for near in get_close_matches(name.lower(), by_lower, n=most)]


def _hint(state: State, name: ModelId) -> str:
    peer = peer_of(state.spec, name)
    if peer is not None:
        return f" on this box: it is the peer {peer}'s, which loads and stops it; ask there"
    if RouteName(name) in state.spec.routes:
        return ": it is a route; name a model that it leads to"
    known = [model.id for model in state.models.values() if not model.is_removed]
    near = near_names(name, known, most=3)
    return f"; did you mean {', '.join(map(repr, near))}?" if near else ""
