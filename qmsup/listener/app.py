"""The WSGI app of a listener: it decides what a request is, and answers it or hands over a relay order."""

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from qmsup.errors import Code, Refusal, RequestError
from qmsup.ids import ListenerName, RequestId
from qmsup.listener import event_page
from qmsup.listener.asking import Scheduler
from qmsup.listener.auth import Keys
from qmsup.listener.body import Environ
from qmsup.listener.catalog import Catalog
from qmsup.listener.circles import Circles
from qmsup.listener.cors import cors_headers
from qmsup.listener.errors import error_body, error_headers, status_line
from qmsup.listener.hardening import SAFE_HEADERS
from qmsup.listener.jobs import path_of_job
from qmsup.listener.orders import named_in_query, order_for
from qmsup.listener.pages import Pages
from qmsup.listener.passthrough import PREFIX, loads_nothing, passed_through
from qmsup.listener.refused import concerns_a_model, told_of
from qmsup.listener.relay.order import RelayOrder
from qmsup.listener.relay.watch import Order
from qmsup.listener.request_ids import new_request_id
from qmsup.listener.routed import Routes
from qmsup.listener.routes import RELAYED, Relayed, looked_at
from qmsup.log import Log
from qmsup.spec import Spec

StartResponse = Callable[[str, list[tuple[str, str]]], object]
"""As much of WSGI's as is used here."""

_READING = frozenset({"GET", "HEAD"})

_log = Log("listener")


class App:
    """One listener's app. It is called from many threads, and keeps nothing between calls."""

    __slots__ = (
        "_catalog",
        "_circles",
        "_idle_paths",
        "_keys",
        "_max_body",
        "_note",
        "_pages",
        "_routes",
    )

    def __init__(self, spec: Spec, listener: ListenerName, link: Scheduler) -> None:
        self._catalog = Catalog(spec, listener)
        self._keys = Keys(spec.listeners[listener].api_keys)
        self._circles = Circles(spec.listeners[listener])
        self._max_body = spec.max_body
        self._routes = Routes(spec, listener, self._catalog)
        self._idle_paths = tuple(re.compile(pattern) for pattern in spec.looked_at_only)
        self._note = link.note
        self._pages = Pages(self._catalog, self._keys, link)

    def __call__(
        self, environ: dict[str, Any], start_response: StartResponse
    ) -> Iterable[bytes] | Order:
        """Answer as WSGI says, or return an order: then `start_response` was not called."""
        try:
            answer = self._answer(environ, start_response)
            if isinstance(answer, RelayOrder):
                return self._circles.marked(answer, environ)
            return answer  # noqa: TRY300 - what raises is here
        except RequestError as error:
            request = new_request_id()
            if concerns_a_model(environ):
                self._note(told_of(environ, error.refusal, request))
            return _refused(error.refusal, environ, start_response, request)
        except Exception:  # noqa: BLE001 - the border: whatever it is, the client gets an answer
            return _broken(environ, start_response)

    def _answer(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes] | Order:
        if self._routes.concerns(environ):
            return self._routes.order_for(environ, self._max_body, self._keys.check(environ))
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        if method == "POST" and (relayed := RELAYED.get(path)) is not None:
            access = self._keys.check(environ)
            catalog = self._catalog.only(access.models)
            by_route = partial(self._routes.order_by_name, environ, relayed.path, access)
            return order_for(
                environ, relayed, catalog, self._max_body, access.key, by_route=by_route
            )
        if method in _READING and (order := self._read(environ, path)) is not None:
            return order
        if path.startswith(PREFIX) and method != "OPTIONS":
            return self._pass_through(environ, start_response)
        return self._page(environ, start_response)

    def _read(self, environ: Environ, path: str) -> Order | None:
        """A look into a model's server, or at what happens; None = it is a page like others."""
        relayed = looked_at(path, environ.get("QUERY_STRING", ""))
        if relayed is not None:
            return self._look(environ, relayed)
        if path.rstrip("/") == event_page.PATH and environ["REQUEST_METHOD"] == "GET":
            access = self._keys.check(environ)
            catalog = self._catalog.only(access.models)
            if name := named_in_query(environ):
                catalog = catalog.only(frozenset((catalog.named(name).id,)))
            return event_page.watch(environ, catalog, self._pages.read)
        return None

    def _look(self, environ: Environ, relayed: Relayed) -> RelayOrder:
        access = self._keys.check(environ)
        catalog = self._catalog.only(access.models)
        return self._if_loaded(order_for(environ, relayed, catalog, self._max_body, access.key))

    def _if_loaded(self, order: RelayOrder) -> RelayOrder:
        try:
            if order.peer is None:
                self._pages.check_loaded(order.model)
        except RequestError:
            if not isinstance(order.body, bytes):
                order.body.close()
            raise
        return order

    def _pass_through(
        self, environ: Environ, start_response: StartResponse
    ) -> Iterable[bytes] | RelayOrder:
        access = self._keys.check(environ)
        if (path := path_of_job(environ["PATH_INFO"])) is not None:
            return self._page({**environ, "PATH_INFO": path}, start_response)
        catalog = self._catalog.only(access.models)
        answer = passed_through(environ, catalog, self._max_body, access.key)
        if isinstance(answer, RelayOrder):
            return self._if_loaded(answer) if loads_nothing(answer, self._idle_paths) else answer
        headers = [("Location", answer.location), ("Content-Length", "0")]
        headers += cors_headers(environ.get("HTTP_ORIGIN"))
        headers.append(("X-QM-Request-Id", new_request_id()))
        start_response("307 Temporary Redirect", headers)
        return ()

    def _page(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        response = self._pages.answer(environ)
        for name, value in cors_headers(environ.get("HTTP_ORIGIN")):
            response.headers.set(name, value)
        for name, value in SAFE_HEADERS:
            response.headers.setdefault(name, value)
        response.headers.set("X-QM-Request-Id", new_request_id())
        return response(environ, start_response)  # type: ignore[arg-type]  # werkzeug passes just these two


def create(spec: Spec, listener: ListenerName, link: Scheduler) -> App:
    """The app of one listener.

    Args:
        spec: The configuration; it names the listener.
        listener: Which port's catalogue and keys count.
        link: The road to the scheduler, for what is not a relayed request.
    """
    return App(spec, listener, link)


def _refused(
    refusal: Refusal, environ: Environ, start_response: StartResponse, request: RequestId
) -> Iterable[bytes]:
    body = error_body(refusal)
    headers = error_headers(refusal, origin=environ.get("HTTP_ORIGIN"), request_id=request)
    _log.debug("request.refused", request=request, code=refusal.code.value)
    start_response(status_line(refusal), [*headers, ("Content-Length", str(len(body)))])
    return () if environ["REQUEST_METHOD"] == "HEAD" else (body,)


def _broken(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    _log.exception("request.broken", method=environ.get("REQUEST_METHOD"))
    refusal = Refusal(
        code=Code.INTERNAL_ERROR, message="qmsup made an error; its log has the details"
    )
    return _refused(refusal, environ, start_response, new_request_id())
