"""The paths that a listener answers itself: its catalogue, its health, and asking the scheduler for something."""

import json
import time
from collections.abc import Callable, Container, Mapping
from contextlib import nullcontext
from functools import partial

from werkzeug.exceptions import MethodNotAllowed, NotFound
from werkzeug.routing import Map, RequestRedirect, Rule
from werkzeug.wrappers import Response

from qmsup import __version__
from qmsup.errors import Code, Refusal, RequestError, SchedulerUnavailableError
from qmsup.ids import ModelId, RouteName
from qmsup.listener import event_page, jobs, log_pages, long_asks
from qmsup.listener.asking import Scheduler
from qmsup.listener.auth import Access, Keys, is_of_this_machine
from qmsup.listener.body import Environ
from qmsup.listener.catalog import Catalog
from qmsup.listener.cors import METHODS, preflight_headers
from qmsup.listener.errors import error_body
from qmsup.listener.lease_body import lease_wanted
from qmsup.listener.metrics_scope import within
from qmsup.listener.orders import named_in_query
from qmsup.listener.records import Record, record_of, record_of_alias, record_of_route
from qmsup.listener.routes import LOOKED_AT, RELAYED
from qmsup.spec import ModelSpec
from qmsup.units import Seconds

_PING = Seconds(2.0)
_READ = Seconds(5.0)
_GLANCE = Seconds(1.0)
"""For what an answer can do without."""
_LOAD = Seconds(3600.0)
"""The scheduler's own limits end a load; this only bounds a thread's wait if those fail."""
_UNLOAD = Seconds(300.0)
_RELOAD = Seconds(60.0)
_RETRY = Seconds(1.0)

_READY = "ready"
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"

_OPEN = frozenset({"health", "favicon"})
"""Endpoints that need no key."""

_OPERATORS = frozenset({"lease", "reload", "load", "unload", "unload_all", "get_unload"})
"""Endpoints that are no business of a client from elsewhere; with a key it is taken for the operator."""

_OF_JOBS: Mapping[str, Callable[[str, jobs.Models | None], Response]] = {
    "job": jobs.read,
    "cancel_job": jobs.cancel,
}

_RULES = (
    ("/", "greeting", "GET"),
    ("/health", "health", "GET"),
    ("/v1/health", "health", "GET"),
    ("/wol-health", "health", "GET"),
    ("/version", "version", "GET"),
    ("/api/version", "version", "GET"),
    ("/running", "running", "GET"),
    ("/v1/models", "models", "GET"),
    ("/models", "models", "GET"),
    ("/v/models", "models", "GET"),
    ("/v1/models/<path:model>", "model", "GET"),
    ("/models/<path:model>", "model", "GET"),
    ("/v/models/<path:model>", "model", "GET"),
    ("/api/queue", "queue", "GET"),
    ("/api/explain/<path:model>", "explain", "GET"),
    ("/api/leases", "leases", "GET"),
    ("/api/leases", "lease", "POST"),
    ("/api/reload", "reload", "POST"),
    ("/api/models/load/<path:model>", "load", "POST"),
    ("/api/models/unload", "unload_all", "POST"),
    ("/api/models/unload/<path:model>", "unload", "POST"),
    ("/unload", "get_unload", "GET"),
    ("/metrics", "metrics", "GET"),
    (event_page.PATH, "events", "GET"),
    ("/logs", "logs", "GET"),
    ("/logs/stream", "log_stream", "GET"),
    ("/logs/stream/<path:model>", "log_stream", "GET"),
    ("/sdcpp/v1/jobs/<job>", "job", "GET"),
    ("/sdcpp/v1/jobs/<job>/cancel", "cancel_job", "POST"),
    ("/favicon.ico", "favicon", "GET"),
    *((path, "relayed", "POST") for path in RELAYED if not path.endswith("/")),
    *((path, "relayed", "GET") for path in LOOKED_AT if not path.endswith("/")),
    *(("/upstream/<path:model>", "relayed", method) for method in METHODS.split(", ")),
    *(("/route/<path:model>", "relayed", method) for method in METHODS.split(", ")),
)


class Pages:
    """Answers ordinary requests of one listener."""

    def __init__(self, catalog: Catalog, keys: Keys, link: Scheduler) -> None:
        self._catalog = catalog
        self._keys = keys
        self._link = link
        self._since = int(time.time())
        self._views: dict[frozenset[ModelId], Pages] = {}
        self._map = Map(
            [Rule(path, endpoint=name, methods=[method]) for path, name, method in _RULES],
            strict_slashes=False,
            merge_slashes=False,
        )
        self._answers: Mapping[str, Callable[[str], Response]] = {
            "greeting": self._greeting,
            "health": self._health,
            "version": self._version,
            "running": self._running,
            "models": self._models,
            "model": self._model,
            "queue": self._queue,
            "explain": self._explain,
            "leases": self._leases,
            "reload": self._reload,
            "load": self._load,
            "unload": self._unload,
            "unload_all": self._unload_all,
            "metrics": self._metrics,
            "events": _events_head,
            "logs": partial(log_pages.recent, self._catalog),
            "favicon": _favicon,
        }

    def answer(self, environ: Environ) -> Response:
        """The answer to any request that is not relayed; CORS and the request's id are the caller's.

        Raises:
            RequestError: The request is refused.
        """
        method = environ["REQUEST_METHOD"]
        path = _path_of(environ)
        adapter = self._map.bind("localhost")
        if method == "OPTIONS":
            allowed = sorted({*adapter.allowed_methods(path), "OPTIONS"})
            return _preflight(environ, allowed)
        try:
            endpoint, arguments = adapter.match(path, method=method)
        except MethodNotAllowed as error:
            self._keys.check(environ)
            return _not_allowed(path, method, sorted({*(error.valid_methods or ()), "OPTIONS"}))
        except (NotFound, RequestRedirect):
            self._keys.check(environ)
            raise _not_found(path) from None
        access = self._checked(endpoint, environ)
        return self._seen_by(access).respond(endpoint, arguments, environ)

    def _checked(self, endpoint: str, environ: Environ) -> Access:
        if endpoint in _OPERATORS:
            return self._keys.check_operator(environ)
        return Access() if endpoint in _OPEN else self._keys.check(environ)

    def _seen_by(self, access: Access) -> "Pages":
        """The same for a client that may see some models only."""
        if access.models is None:
            return self
        view = self._views.get(access.models)
        if view is None:
            view = Pages(self._catalog.only(access.models), self._keys, self._link)
            self._views[access.models] = view
        return view

    def respond(self, endpoint: str, arguments: Mapping[str, str], environ: Environ) -> Response:
        """The answer of an endpoint to a request that has passed; see `answer`."""
        if endpoint == "relayed":  # slashes that the app does not take for a relayed path's
            raise _not_found(environ["PATH_INFO"])
        name = arguments.get("model") or named_in_query(environ)
        if endpoint == "get_unload":
            return self._get_unload(environ, name)
        if endpoint == "lease":
            return self._lease(environ)
        if endpoint in _OF_JOBS:
            allowed = self._catalog if self._keys.are_there else None
            return _OF_JOBS[endpoint](arguments["job"], allowed)
        if endpoint == "log_stream":
            return log_pages.stream(self._catalog, name, environ)
        return self._answers[endpoint](name)

    def check_loaded(self, model: ModelId) -> None:
        """Let a request pass that must not load its model.

        Raises:
            RequestError: It is not ready, or the scheduler does not answer.
        """
        answer = self._ask("running", {}, _READ)
        entries = answer.get("running", []) if isinstance(answer, dict) else answer
        states = {entry.get("model"): entry.get("state") for entry in _dicts(entries)}
        if states.get(model) != _READY:
            message = f"model {model} is not loaded, and looking at it does not load it: POST /api/models/load/{model}"
            raise RequestError(Refusal(code=Code.MODEL_NOT_LOADED, message=message))

    def read(self, verb: str) -> object:
        """The body of the scheduler's answer to a reading verb.

        Raises:
            RequestError: It does not answer, or refuses.
        """
        return self._ask(verb, {}, _READ)

    def _greeting(self, _: str) -> Response:
        return _json({"name": "qmsup", "version": __version__, "models": "/v1/models"})

    def _version(self, _: str) -> Response:
        return _json({"version": __version__})

    def _health(self, _: str) -> Response:
        self._ask("ping", {}, _PING)
        return _json({"status": "ok"})

    def _running(self, name: str) -> Response:
        about = self._about(name)
        answer = self._ask("running", {}, _READ)
        entries = answer.get("running", []) if isinstance(answer, dict) else answer
        return _json({"running": [e for e in _dicts(entries) if e.get("model") in about]})

    def _about(self, name: str) -> Container[object]:
        """What a page of several models is about: one, where the request names it.

        Raises:
            RequestError: There is no such model here.
        """
        return (self._catalog.named(name).id,) if name else self._catalog

    def _models(self, _: str) -> Response:
        ready = self._ready()
        data: list[Record] = []
        for model in self._catalog.listed():
            record = self._described(model, ready)
            data.append(record)
            if self._catalog.lists_aliases:
                data += [record_of_alias(alias, model, record) for alias in model.aliases]
        data += [self._routed(route, model) for route, model in self._catalog.routes.items()]
        return _json({"object": "list", "data": data})

    def _model(self, name: str) -> Response:
        route = RouteName(name)
        if (model := self._catalog.routes.get(route)) is not None:
            return _json(self._routed(route, model))
        return _json(self._described(self._catalog.named(name), self._ready()))

    def _routed(self, route: RouteName, model: ModelId) -> Record:
        known = self._catalog.find(model)
        bare: Record = {"object": "model", "created": self._since, "owned_by": "qmsup"}
        record = bare if known is None else self._described(known, None)
        return record_of_route(route, model, record)

    def _ready(self) -> frozenset[object] | None:
        """The models that are loaded; None = the scheduler does not say, and the list is told without that."""
        try:
            answer = self._ask("running", {}, _GLANCE)
        except RequestError:
            return None
        entries = answer.get("running", []) if isinstance(answer, dict) else answer
        return frozenset(e.get("model") for e in _dicts(entries) if e.get("state") == _READY)

    def _queue(self, name: str) -> Response:
        """The line as it concerns this port; positions are over the whole line."""
        about = self._about(name)
        answer = self._ask("queue", {}, _READ)
        shown = {
            key: [e for e in _dicts(answer.get(key)) if e.get("model") in about]
            for key in ("queue", "loading")
            if isinstance(answer, dict)
        }
        return _json(shown)

    def _explain(self, name: str) -> Response:
        return _json(self._ask("explain", {"model": self._catalog.named(name).id}, _READ))

    def _leases(self, name: str) -> Response:
        about = self._about(name)
        answer = self._ask("leases", {}, _READ)
        entries = answer.get("leases", []) if isinstance(answer, dict) else answer
        return _json({"leases": [e for e in _dicts(entries) if e.get("model") in about]})

    def _lease(self, environ: Environ) -> Response:
        """Take a lease for a job; it waits for the model as a load does."""
        wanted = lease_wanted(environ)
        args = {**wanted, "model": self._catalog.named(wanted["model"]).id}
        return _json(self._ask("lease", args, _LOAD))

    def _reload(self, _: str) -> Response:
        return _json(self._ask("reload", {}, _RELOAD))

    def _metrics(self, _: str) -> Response:
        answer = self._ask("metrics", {}, _READ)
        text = str(answer.get("text", "")) if isinstance(answer, dict) else ""
        scope = self._catalog.scope
        shown = text if scope is None else within(text, scope)
        return Response(shown, content_type=_PROMETHEUS)

    def _load(self, name: str) -> Response:
        model = self._catalog.named(name)
        answer = self._ask("load", {"model": model.id}, _LOAD)
        return _json(answer if isinstance(answer, dict) and answer else {"model": model.id})

    def _unload(self, name: str) -> Response:
        return self._unloaded((self._catalog.named(name).id,))

    def _unload_all(self, name: str) -> Response:
        return self._unload(name) if name else self._unloaded(self._catalog.ids())

    def _get_unload(self, environ: Environ, name: str) -> Response:
        """The one GET that changes something, for old scripts on this machine."""
        if not is_of_this_machine(environ):
            message = "GET /unload is for programs on this machine: POST /api/models/unload"
            raise RequestError(Refusal(code=Code.INVALID_API_KEY, message=message))
        if environ["REQUEST_METHOD"] == "GET":
            self._unload_all(name)
        return Response(b"OK", content_type="text/plain; charset=utf-8")

    def _unloaded(self, models: tuple[ModelId, ...]) -> Response:
        """Unload just these: naming none would mean all, of every listener."""
        answer = self._ask("unload", {"models": list(models)}, _UNLOAD) if models else {}
        return _json(answer if isinstance(answer, dict) and answer else {"unloaded": list(models)})

    def _described(self, model: ModelSpec, ready: frozenset[object] | None) -> Record:
        peer = self._catalog.peers.get(model.id)
        return record_of(
            model,
            created=self._since,
            owner="qmsup" if peer is None else peer.name,
            is_loaded=None if ready is None or peer is not None else model.id in ready,
        )

    def _ask(self, verb: str, args: Mapping[str, object], timeout: Seconds) -> object:
        try:
            with nullcontext() if timeout <= _READ else long_asks.place():
                return self._link.ask(verb, args, timeout)
        except SchedulerUnavailableError as error:
            raise RequestError(
                Refusal(
                    code=Code.SCHEDULER_UNAVAILABLE,
                    message=str(error) or "the scheduler does not answer: is it running?",
                    retry_after=_RETRY,
                )
            ) from error


def _path_of(environ: Environ) -> str:
    """The path in characters (WSGI has it in bytes posing as Latin-1), a trailing slash forgiven."""
    raw: str = environ["PATH_INFO"]
    path = raw.encode("latin-1", "replace").decode("utf-8", "replace")
    return "/" + path.strip("/")


def _json(value: object) -> Response:
    return Response(json.dumps(value).encode(), content_type="application/json")


def _events_head(_: str) -> Response:
    """What a HEAD is told of the stream, which the app hands over."""
    return Response(content_type="text/event-stream", headers={"Cache-Control": "no-cache"})


def _favicon(_: str) -> Response:
    return Response(status=204)


def _preflight(environ: Environ, allowed: list[str]) -> Response:
    wanted = environ.get("HTTP_ACCESS_CONTROL_REQUEST_HEADERS")
    headers = preflight_headers(environ.get("HTTP_ORIGIN"), wanted)
    return Response(status=204, headers=[("Allow", ", ".join(allowed)), *headers])


def _not_allowed(path: str, method: str, allowed: list[str]) -> Response:
    said = ", ".join(allowed)
    message = f"{path[:200]} takes {said}, not {method[:20]}"
    response = Response(
        error_body(Refusal(code=Code.METHOD_NOT_ALLOWED, message=message)),
        status=405,
        content_type="application/json",
    )
    response.headers["Allow"] = said
    return response


def _not_found(path: str) -> RequestError:
    return RequestError(
        Refusal(
            code=Code.NOT_FOUND,
            message=f"nothing is at {path[:200]!r}: models are at /v1/models, chat at /v1/chat/completions",
        )
    )


def _dicts(value: object) -> list[dict[str, object]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
