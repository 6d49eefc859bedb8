"""From a client's request to the relay order: everything that is decided before the scheduler is asked.

This is the hot path. Nothing here parses more than it must, and no library's request object is made.
"""

from collections.abc import Callable
from urllib.parse import parse_qs

from qmsup.errors import Code, Refusal, RequestError
from qmsup.listener.body import Body, Environ, read_body
from qmsup.listener.catalog import Catalog
from qmsup.listener.edits import edited
from qmsup.listener.fingerprint import client_of, conversation_of
from qmsup.listener.forms import read_form
from qmsup.listener.headers import upstream_head, wish
from qmsup.listener.jobs import as_job
from qmsup.listener.payload import Fields, model_in, read_fields, wants_stream
from qmsup.listener.relay.order import RelayOrder
from qmsup.listener.request_ids import new_request_id
from qmsup.listener.routes import Relayed

_NOTHING = Fields()
_JSON = "application/json"
_MOST_IN_QUERY = 100


ByRoute = Callable[[str, Body], RelayOrder]
"""The order for a route that is named as a model is, of a request whose body was read."""


def order_for(
    environ: Environ,
    relayed: Relayed,
    catalog: Catalog,
    max_body: int,
    key: str = "",
    *,
    by_route: ByRoute | None = None,
) -> RelayOrder:
    """Read and judge a request for a model.

    Args:
        environ: The request; its body is read.
        relayed: What its path is.
        catalog: What this listener shows.
        max_body: In bytes.
        key: Which of the listener's it came with.
        by_route: What to do where the model is one of the catalogue's routes; None = there it is none.

    Raises:
        RequestError: It cannot be served as it stands.
    """
    body = read_body(environ, max_body)
    try:
        kind = environ.get("CONTENT_TYPE", "")
        is_json = not kind or kind.startswith(_JSON)
        form = None if is_json or not body.length else read_form(body, kind)
        read = read_fields(body.buffer()) if form is None and body.length else _NOTHING
        fields = read if form is None else form.fields
        query = environ.get("QUERY_STRING", "")
        name = _model_name(fields, query)
        if name in catalog.routes and by_route is not None:
            return by_route(name, body)
        model = catalog.named(name)
        streams = wants_stream(fields)
        if (edits := catalog.edits.get(name)) is not None and body.length:
            if form is None:
                body, streams = edited(body, edits), edits.streams(streams)
            elif form.model is not None and model.use_model_name is not None:
                body = form.renamed(body, model.use_model_name)
        conversation = conversation_of(environ, fields)
        order = RelayOrder(
            request=new_request_id(),
            model=model.id,
            method=environ["REQUEST_METHOD"],
            head=upstream_head(
                environ, f"{relayed.path}?{query}" if query else relayed.path, body.length
            ),
            body=body.content,
            streaming=relayed.generates and streams,
            quiet=not model.send_loading_state,
            dialect=relayed.dialect,
            hold=wish(environ, "HTTP_X_QM_HOLD_MS"),
            patience=wish(environ, "HTTP_X_QM_PATIENCE_MS"),
            timeout=wish(environ, "HTTP_X_QM_TIMEOUT_MS"),
            conversation=conversation,
            client="" if conversation else client_of(environ),
            key=key,
            origin=environ.get("HTTP_ORIGIN"),
            peer=catalog.peers.get(model.id),
        )
        return as_job(order) if relayed.begins_job and order.peer is None else order
    except BaseException:
        body.close()
        raise


def named_by(fields: Fields, query: str) -> str:
    """The model's name as the client wrote it, in the body or the query; "" = nowhere.

    Raises:
        RequestError: It is no name.
    """
    name = model_in(fields)
    return _model_in_query(query) if not name and "model=" in query else name


def named_in_query(environ: Environ) -> str:
    """The same of a request without a body."""
    return named_by(_NOTHING, environ.get("QUERY_STRING", ""))


def _model_name(fields: Fields, query: str) -> str:
    if not (name := named_by(fields, query)):
        raise RequestError(
            Refusal(
                code=Code.MODEL_MISSING,
                message='name a model: `"model": "..."` in the JSON body, a field `model` of a form, or `?model=...`; '
                "GET /v1/models lists what this port has",
            )
        )
    return name


def _model_in_query(query: str) -> str:
    try:
        return parse_qs(query, max_num_fields=_MOST_IN_QUERY).get("model", [""])[0]
    except ValueError:
        raise RequestError(
            Refusal(
                code=Code.BAD_REQUEST,
                message=f"the query has more than {_MOST_IN_QUERY} parameters",
            )
        ) from None
