"""Complete small requests judged in the loop's own thread, so that no pool thread has to be woken for them.

Whatever is not plainly such a request (incomplete, large, chunked, of another kind, malformed) is left to gunicorn,
whose parser then reads the same bytes from the start and says what is wrong with them.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gunicorn.config import Config
from gunicorn.http.wsgi import base_environ

from qmsup.listener.deployment import WsgiApp
from qmsup.listener.refused import TRIAL
from qmsup.listener.relay.engine import RelayOptions
from qmsup.listener.relay.order import RelayOrder
from qmsup.listener.relay.watch import Order
from qmsup.listener.routes import RELAYED

if TYPE_CHECKING:
    from gunicorn.workers.gthread import TConn

READ = 64 * 1024
"""What is read at once; a request beyond it is not small."""

_Parse = Callable[[bytes, object, object], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Relayed:
    """An order, and what the client's connection can do.

    Attributes:
        options: of the version of the configuration that the order was made by; None = the one in force now.
    """

    order: Order
    is_http11: bool
    keeps_alive: bool
    options: RelayOptions | None = None


class Inline:
    """Makes orders out of complete requests."""

    def __init__(self, app: WsgiApp, cfg: Config, parse: _Parse) -> None:
        self._app = app
        self._parse = parse
        self._base = {
            **base_environ(cfg),
            "wsgi.multithread": True,
            "SCRIPT_NAME": "",
        }

    def order_for(self, data: bytes, conn: "TConn") -> Relayed | None:
        """The order that a request in the buffer amounts to, or None when gunicorn is to deal with it.

        The app is called again by gunicorn then: an answer of its own, such as a refusal, is not used here.
        """
        if not data.startswith(b"POST /"):
            return None
        try:
            environ = self._parse(data, conn.server, conn.client)
        except Exception:  # noqa: BLE001 - ParseError, IncompleteError: gunicorn's parser says what it is
            return None
        if environ["PATH_INFO"] not in RELAYED or not _is_plain(environ):
            return None
        start = environ["_consumed"]
        if len(data) != start + int(environ["CONTENT_LENGTH"]):
            return None
        query = environ["QUERY_STRING"]
        environ.update(self._base)
        environ[TRIAL] = True
        environ["RAW_URI"] = f"{environ['PATH_INFO']}?{query}" if query else environ["PATH_INFO"]
        environ["wsgi.input"] = io.BytesIO(data[start:])
        environ["gunicorn.socket"] = conn.sock
        answer = self._app(environ, _start_nothing)
        if not isinstance(answer, RelayOrder):
            return None
        is_http11 = environ["SERVER_PROTOCOL"] == "HTTP/1.1"
        return Relayed(answer, is_http11, _keeps_alive(environ, is_http11=is_http11))


def inline_for(app: WsgiApp, cfg: Config) -> Inline | None:
    """An Inline where the fast parser is installed (`pip install qmsup[fast]`) and nothing forbids it."""
    if cfg.http_parser == "python" or cfg.proxy_protocol != "off":
        return None
    try:
        from gunicorn_h1c import parse_to_wsgi_environ
    except ImportError:
        return None
    return Inline(app, cfg, parse_to_wsgi_environ)


def _is_plain(environ: dict[str, Any]) -> bool:
    query = environ["QUERY_STRING"]
    return (
        "CONTENT_LENGTH" in environ
        and "HTTP_TRANSFER_ENCODING" not in environ
        and "HTTP_EXPECT" not in environ
        and "HTTP_CONTENT_ENCODING" not in environ  # a few bytes may be many
        and (not query or (query.isascii() and query.isprintable() and "#" not in query))
    )


def _keeps_alive(environ: dict[str, Any], *, is_http11: bool) -> bool:
    wish = environ.get("HTTP_CONNECTION")
    if wish is None:
        return is_http11
    tokens = [token.strip() for token in wish.lower().split(",")]
    return "close" not in tokens and (is_http11 or "keep-alive" in tokens)


def _start_nothing(_status: str, _headers: object, _error: object = None) -> None:
    """Stands in for `start_response` of an answer that is not used."""
