"""`/upstream/{model}/{path}`: any method and path of a model's own server, its percent-encoding kept byte for byte."""

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from qmsup.errors import Code, Refusal, RequestError
from qmsup.listener.body import Environ, read_body
from qmsup.listener.catalog import Catalog
from qmsup.listener.fingerprint import client_of, conversation_of
from qmsup.listener.headers import CLOSE, upstream_head, wish
from qmsup.listener.jobs import as_job
from qmsup.listener.outcome import Dialect
from qmsup.listener.payload import Fields
from qmsup.listener.relay.heads import SWITCH
from qmsup.listener.relay.order import RelayOrder
from qmsup.listener.request_ids import new_request_id
from qmsup.listener.routes import RELAYED
from qmsup.spec import ModelSpec

PREFIX = "/upstream/"
_NOTHING = Fields()
_BODILESS = frozenset({"GET", "HEAD", "DELETE", "OPTIONS", "TRACE"})


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The same, with the slash that makes relative links of a page lead into it.

    Attributes:
        location: path and query.
    """

    location: str


def passed_through(
    environ: Environ, catalog: Catalog, max_body: int, key: str = ""
) -> RelayOrder | Elsewhere:
    """Read and judge a request for a model's own server. Its body is anybody's: it is not looked into.

    Args:
        environ: The request; its body is read.
        catalog: What this listener shows.
        max_body: In bytes.
        key: Which of the listener's it came with.

    Raises:
        RequestError: It cannot be served as it stands.
    """
    method = environ["REQUEST_METHOD"]
    query = environ.get("QUERY_STRING", "")
    path = _raw_path(environ)
    model, rest = _split(path.removeprefix(PREFIX), catalog)
    if not rest and method in ("GET", "HEAD"):
        return Elsewhere(f"{path}/?{query}" if query else f"{path}/")
    body = read_body(environ, max_body)
    try:
        known = RELAYED.get(rest) if method == "POST" else None
        target = f"{rest or '/'}?{query}" if query else rest or "/"
        length = None if method in _BODILESS and not body.length else body.length
        head = upstream_head(environ, target, length)
        if upgrades := length is None and _asks_for_websocket(environ):
            head = head.removesuffix(CLOSE) + SWITCH
        conversation = conversation_of(environ, _NOTHING)
        order = RelayOrder(
            request=new_request_id(),
            model=model.id,
            method=method,
            head=head,
            body=body.content,
            upgrades=upgrades,
            dialect=Dialect.NONE if known is None else known.dialect,
            hold=wish(environ, "HTTP_X_QM_HOLD_MS"),
            patience=wish(environ, "HTTP_X_QM_PATIENCE_MS"),
            timeout=wish(environ, "HTTP_X_QM_TIMEOUT_MS"),
            conversation=conversation,
            client="" if conversation else client_of(environ),
            key=key,
            origin=environ.get("HTTP_ORIGIN"),
            peer=catalog.peers.get(model.id),
        )
        begins_job = known is not None and known.begins_job and order.peer is None
        return as_job(order) if begins_job else order
    except BaseException:
        body.close()
        raise


def loads_nothing(order: RelayOrder, patterns: tuple[re.Pattern[str], ...]) -> bool:
    """Whether a pattern is found in its path, as the model's server gets it: no model is loaded for it then."""
    if not patterns:
        return False
    path = unquote(order.head.split(b" ", 2)[1].partition(b"?")[0].decode("latin-1"))
    return any(pattern.search(path) for pattern in patterns)


def _asks_for_websocket(environ: Environ) -> bool:
    """No other protocol is passed through: what it carries could not be told from requests of others."""
    tokens = environ.get("HTTP_CONNECTION", "").lower().split(",")
    return (
        environ["REQUEST_METHOD"] == "GET"
        and environ.get("HTTP_UPGRADE", "").lower() == "websocket"
        and "upgrade" in (token.strip() for token in tokens)
    )


def _raw_path(environ: Environ) -> str:
    raw: str = environ["RAW_URI"]
    if not raw.startswith("/"):  # http://host/upstream/..., as for a proxy
        raw = urlsplit(raw).path
    path = raw.partition("#")[0].partition("?")[0]
    if not path.startswith(PREFIX):  # its own letters are spelled with percent signs
        raise RequestError(
            Refusal(code=Code.NOT_FOUND, message=f"write {PREFIX}MODEL/PATH without escapes")
        )
    return path


def _split(path: str, catalog: Catalog) -> tuple[ModelSpec, str]:
    """The model that a path begins with, and what remains. The longest name counts: names may hold slashes."""
    segments = path.split("/")
    if not path.strip("/"):
        message = f"name a model: {PREFIX}MODEL/PATH; GET /v1/models lists what this port has"
        raise RequestError(Refusal(code=Code.MODEL_NOT_FOUND, message=message))
    for count in range(min(len(segments), catalog.most_slashes + 1), 0, -1):
        name = unquote("/".join(segments[:count]))
        if catalog.find(name) is not None:
            rest = segments[count:]
            return catalog.named(name), "/" + "/".join(rest) if rest else ""
    return catalog.named(unquote(segments[0])), ""
