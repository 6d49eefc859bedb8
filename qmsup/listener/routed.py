"""Requests of routes: `/route/NAME/PATH`, or any path for a model with `X-QM-Route: NAME`.

Which host one goes to is the scheduler's to say. Here it is read, its model found, and everything made ready for any of
the route's hosts: nothing in the request depends on which one it will be, but the key that it is sent with.
"""

import json
import re
from urllib.parse import quote, unquote, urlsplit

from qmsup.errors import Code, Refusal, RequestError
from qmsup.ids import ListenerName, ModelId, RouteName
from qmsup.listener.auth import Access
from qmsup.listener.body import Body, Environ, read_body
from qmsup.listener.catalog import Catalog
from qmsup.listener.edits import Edits, edited
from qmsup.listener.fingerprint import client_of, conversation_of
from qmsup.listener.forms import Form, read_form
from qmsup.listener.headers import upstream_head, wish
from qmsup.listener.jobs import as_job
from qmsup.listener.orders import named_by
from qmsup.listener.outcome import Dialect
from qmsup.listener.payload import Fields, read_fields, wants_stream
from qmsup.listener.prompt_size import tokens_in_prompt
from qmsup.listener.relay.order import RelayOrder, Wayfaring
from qmsup.listener.remotes import remotes_of
from qmsup.listener.request_ids import new_request_id
from qmsup.listener.routes import LOOKED_AT, RELAYED, Relayed, looked_at
from qmsup.spec import RouteSpec, Spec

PREFIX = "/route/"
HEADER = "HTTP_X_QM_ROUTE"
_MOST_NAMED = 8
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_NOTHING = Fields()
_NO_EDITS = Edits()
_JSON = "application/json"
_BODILESS = frozenset({"GET", "HEAD", "DELETE", "OPTIONS", "TRACE"})
_LOOKING = frozenset({"GET", "HEAD"})
_STEERING = frozenset({"/tokenize", "/detokenize", "/apply-template", "/v1/messages/count_tokens"})
"""Of the paths for models, those that take no slot of their server."""


class Routes:
    """The routes of one listener."""

    def __init__(self, spec: Spec, listener: ListenerName, catalog: Catalog) -> None:
        """Know them.

        Args:
            spec: the configuration.
            listener: whose port it is.
            catalog: of that port, for the aliases and filters of this box's models.
        """
        self._spec = spec
        self._shown = spec.listeners[listener].routes
        self._catalog = catalog
        self._remotes = remotes_of(spec)

    def concerns(self, environ: Environ) -> bool:
        """Whether a request is one of a route."""
        path: str = environ["PATH_INFO"]
        if path.startswith(PREFIX):
            return bool(environ["REQUEST_METHOD"] != "OPTIONS")
        if HEADER not in environ:
            return False
        if environ["REQUEST_METHOD"] == "POST":
            return path in RELAYED
        return looked_at(path, "model=") is not None

    def order_for(self, environ: Environ, max_body: int, access: Access) -> RelayOrder:
        """Read and judge a request of a route.

        Args:
            environ: The request; its body is read.
            max_body: In bytes.
            access: What its key is for.

        Raises:
            RequestError: It cannot be served as it stands.
        """
        name, path = _place(environ)
        route = self._route(name)
        body = read_body(environ, max_body)
        try:
            return self._order(environ, RouteName(name), route, path, body, access)
        except BaseException:
            body.close()
            raise

    def order_by_name(
        self, environ: Environ, path: str, access: Access, name: str, body: Body
    ) -> RelayOrder:
        """The order for a route that stands where a model's name does.

        Args:
            environ: The request; its body was read, and is the caller's to close if this raises.
            path: On its host.
            access: What its key is for.
            name: The route's.
            body: The request's.

        Raises:
            RequestError: It cannot be served as it stands.
        """
        route = self._route(name)
        return self._order(environ, RouteName(name), route, path, body, access, is_named=True)

    def _order(  # noqa: PLR0913 - of one request, all of them
        self,
        environ: Environ,
        name: RouteName,
        route: RouteSpec,
        path: str,
        body: Body,
        access: Access,
        *,
        is_named: bool = False,
    ) -> RelayOrder:
        method, query = environ["REQUEST_METHOD"], environ.get("QUERY_STRING", "")
        known = RELAYED.get(path) if method == "POST" else None
        fields, form = _fields(environ, body) if known is not None else (_NOTHING, None)
        is_json = known is not None and form is None
        written = "" if is_named else named_by(fields, query)
        written = written or route.default_model
        model = self._model(written, access)
        is_control = known is None or known.path in _STEERING
        tokens = 0 if is_control or not is_json else tokens_in_prompt(body.buffer())
        streams = wants_stream(fields)
        if is_json and body.length:
            is_written = not is_named and written == model and bool(fields.model)
            edits = self._edits(written, model, is_written=is_written)
            if edits != _NO_EDITS:
                body, streams = edited(body, edits), edits.streams(streams)
        elif is_named and form is not None and form.model is not None:
            body = form.renamed(body, model)
        if known is None and path in LOOKED_AT and "model=" not in query:
            # A server of several models has to be told which one is meant.
            query = f"{query}&" * bool(query) + f"model={quote(model, safe='')}"
        length = None if method in _BODILESS and not body.length else body.length
        conversation = conversation_of(environ, fields)
        known = known or Relayed(path)
        order = RelayOrder(
            request=new_request_id(),
            model=model,
            method=method,
            head=upstream_head(environ, f"{path}?{query}" if query else path, length),
            body=body.content,
            streaming=known.generates and streams,
            dialect=known.dialect if not is_control else Dialect.NONE,
            hold=wish(environ, "HTTP_X_QM_HOLD_MS"),
            patience=wish(environ, "HTTP_X_QM_PATIENCE_MS"),
            timeout=wish(environ, "HTTP_X_QM_TIMEOUT_MS"),
            conversation=conversation,
            client="" if conversation else client_of(environ),
            key=access.key,
            origin=environ.get("HTTP_ORIGIN"),
            way=Wayfaring(
                route=name,
                remotes=self._remotes,
                is_control=is_control,
                is_look=is_control and method in _LOOKING,
                tokens=tokens,
            ),
        )
        # On this box the scheduler process looks after it; another machine's jobs are that machine's.
        return as_job(order) if known.begins_job else order

    def _route(self, name: str) -> RouteSpec:
        route = self._spec.route_named(name) if _NAME.fullmatch(name) else None
        if route is None or (self._shown is not None and route.name not in self._shown):
            there = [r for r in self._spec.routes if self._shown is None or r in self._shown]
            known = ", ".join(there[:_MOST_NAMED]) or "none"
            message = f"this port has no route {name[:64]!r}; it has {known}"
            raise RequestError(Refusal(code=Code.ROUTE_NOT_FOUND, message=message))
        return route

    def _model(self, written: str, access: Access) -> ModelId:
        if not written:
            message = "name a model in the body or the query, or give the route a default_model"
            raise RequestError(Refusal(code=Code.MODEL_MISSING, message=message))
        found = self._catalog.find(written)
        model = ModelId(written) if found is None else found.id
        if access.models is not None and model not in access.models:
            message = f"this API key is not for model {written[:100]}"
            raise RequestError(Refusal(code=Code.MODEL_NOT_ALLOWED, message=message))
        return model

    def _edits(self, written: str, model: ModelId, *, is_written: bool) -> Edits:
        """What the model's filters say, and its name as hosts know it where the client wrote another, or none."""
        edits = self._catalog.edits.get(written, _NO_EDITS)
        if is_written:
            return Edits(strip=edits.strip, put=edits.put)
        name = json.dumps(model).encode()
        return Edits(strip=edits.strip, put={**edits.put, "model": name})


def _place(environ: Environ) -> tuple[str, str]:
    """The route that a request names, and the path on its host, percent-encoding kept."""
    if not environ["PATH_INFO"].startswith(PREFIX):
        path = environ["PATH_INFO"]
        relayed = RELAYED.get(path) or LOOKED_AT.get(path)
        return environ[HEADER].strip(), path if relayed is None else relayed.path
    raw: str = environ["RAW_URI"]
    if not raw.startswith("/"):
        raw = urlsplit(raw).path
    raw = raw.partition("#")[0].partition("?")[0]
    if not raw.startswith(PREFIX):  # its own letters are spelled with percent signs
        message = f"write {PREFIX}NAME/PATH without escapes"
        raise RequestError(Refusal(code=Code.NOT_FOUND, message=message))
    name, slash, rest = raw.removeprefix(PREFIX).partition("/")
    return unquote(name), slash + rest or "/"


def _fields(environ: Environ, body: Body) -> tuple[Fields, Form | None]:
    """What the body asks for, and the form that it is; JSON is none."""
    if not body.length:
        return _NOTHING, None
    kind = environ.get("CONTENT_TYPE", "")
    form = None if not kind or kind.startswith(_JSON) else read_form(body, kind)
    return (read_fields(body.buffer()), None) if form is None else (form.fields, form)
