"""What one listener shows: its models by id and alias, and what to say about a name that is neither.

A key may be for some of the models only: then its holder has a catalogue of these (`only`), where the others' names are
known and refused.
"""

import copy
import difflib
import heapq
import json

from qmsup.errors import Code, Refusal, RequestError
from qmsup.ids import ListenerName, ModelId
from qmsup.listener.edits import Edits
from qmsup.listener.metrics_scope import Scope
from qmsup.listener.remotes import peers_shown, routes_named
from qmsup.spec import LOCAL, ModelSpec, Spec

_NO_EDITS = Edits()
_MAX_SHOWN_NAME = 120
_NEAR = 3
_CUTOFF = 0.5
_COMPARED = 24


class Catalog:
    """The models of one listener.

    Attributes:
        models: in the order of the file, unlisted ones included; those of peers are not among them.
        routes: those that can be used as models, and the model that each stands for.
        peers: model → where it is relayed to without asking the scheduler.
        edits: name → what is changed in JSON requests that use it; most names have none.
        scope: what of the box's metrics is shown; None = all of them.
        lists_aliases: whether the list of models has one entry for each alias, too.
        most_slashes: that any name holds.
    """

    __slots__ = (
        "_allowed",
        "_by_name",
        "_hosts",
        "_listener",
        "_views",
        "edits",
        "lists_aliases",
        "models",
        "most_slashes",
        "peers",
        "routes",
        "scope",
    )

    def __init__(self, spec: Spec, listener: ListenerName) -> None:
        self._listener = listener
        self.models = spec.shown_on(spec.listeners[listener])
        self.lists_aliases = spec.list_aliases
        self._by_name: dict[str, ModelSpec] = {}
        for model in self.models:
            for alias in model.aliases:
                self._by_name.setdefault(alias, model)
        self._by_name.update((model.id, model) for model in self.models)  # an id beats an alias
        shown = peers_shown(spec, listener)
        self.peers = {model: remote for model, (_, remote) in shown.items()}
        self._by_name.update((model, described) for model, (described, _) in shown.items())
        self.routes = routes_named(spec, listener, self._by_name)
        changed = ((name, _edits_of(name, model)) for name, model in self._by_name.items())
        self.edits = {name: edits for name, edits in changed if edits != _NO_EDITS}
        self.most_slashes = max((name.count("/") for name in self._by_name), default=0)
        self._allowed = frozenset(model.id for model in self._by_name.values())
        self._views: dict[frozenset[ModelId], Catalog] = {}
        self.scope: Scope | None = None
        own = spec.listeners[listener]
        self._hosts = {LOCAL} | {
            host for r in spec.routes.values() if own.serves(r.name) for host in r.hosts
        }
        if own.groups is not None or own.routes is not None:
            self.scope = self._seen()

    def only(self, models: frozenset[ModelId] | None) -> "Catalog":
        """The same for a client that may use just these models; None = all of them."""
        if models is None:
            return self
        view = self._views.get(models)
        if view is None:
            view = copy.copy(self)
            view.models = tuple(model for model in self.models if model.id in models)
            view._allowed = self._allowed & models  # noqa: SLF001 - a copy of this very one
            view.routes = {r: model for r, model in self.routes.items() if model in models}
            view.scope = view._seen()  # noqa: SLF001
            self._views[models] = view
        return view

    def _seen(self) -> Scope:
        models = self._allowed.union(self.routes.values())
        return {"model": models, "listener": (self._listener,), "host": self._hosts}

    def __contains__(self, model: object) -> bool:
        return isinstance(model, str) and model in self._allowed

    def ids(self) -> tuple[ModelId, ...]:
        """Every id, unlisted ones included."""
        return tuple(model.id for model in self.models)

    def listed(self) -> tuple[ModelSpec, ...]:
        """What a client sees that asks for the list."""
        peers = (self._by_name[model] for model in self.peers if model in self._allowed)
        return tuple(model for model in (*self.models, *peers) if not model.unlisted)

    def find(self, name: str) -> ModelSpec | None:
        """The model with this id or alias, if there is one: also one that may not be used (see `named`)."""
        return self._by_name.get(name)

    def named(self, name: str) -> ModelSpec:
        """The model with this id or alias.

        Raises:
            RequestError: There is none here; the message names those that read alike. Or it is not for this client.
        """
        found = self._by_name.get(name)
        if found is None:
            raise RequestError(self._unknown(name))
        if found.id not in self._allowed:
            message = f"this API key is not for model {name}; GET /v1/models lists what it is for"
            raise RequestError(Refusal(code=Code.MODEL_NOT_ALLOWED, message=message))
        return found

    def _unknown(self, name: str) -> Refusal:
        shown = name if len(name) <= _MAX_SHOWN_NAME else name[:_MAX_SHOWN_NAME] + "..."
        near = self._near(name[:_MAX_SHOWN_NAME])
        hint = f"did you mean {' or '.join(near)}?" if near else "GET /v1/models lists what it has"
        return Refusal(
            code=Code.MODEL_NOT_FOUND, message=f"this port has no model {shown!r}; {hint}"
        )

    def _near(self, name: str) -> list[str]:
        shown = ((n, m) for n, m in self._by_name.items() if m.id in self._allowed)
        listed = [n for n, model in shown if not model.unlisted]
        listed += self.routes
        by_lower = {n.lower(): n for n in listed}
        name = name.lower()
        # To compare with hundreds of names that are all alike takes as long as dozens of requests.
        likely = heapq.nlargest(_COMPARED, by_lower, key=lambda n: _alike(n, name))
        near = difflib.get_close_matches(name, likely, n=_NEAR, cutoff=_CUTOFF)
        return [by_lower[n] for n in near]


def _alike(one: str, other: str) -> int:
    """How many characters two names begin with alike."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _edits_of(name: str, model: ModelSpec) -> Edits:
    filters, rename = model.filters, model.use_model_name
    put = {**filters.put, **filters.put_by_name.get(name, {})}
    return Edits(
        strip=frozenset(filters.strip),
        put={key: value.encode() for key, value in put.items()},
        rename=None if rename is None else json.dumps(rename).encode(),
    )
