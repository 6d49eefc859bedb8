"""`/logs` and `/logs/stream`: what the models' programs wrote, read from their files.

A reader costs the programs nothing, however slow it is: they write their files, and whoever reads falls behind alone.
A stream takes a thread of its worker for as long as it lasts, so there is a bound on their number.
"""

import select
import socket
import threading
from collections.abc import Iterable, Iterator, Sequence

from werkzeug.wrappers import Response

from qmsup import places
from qmsup.child_logs import Follower, last_lines_if_any
from qmsup.errors import Code, Refusal, RequestError
from qmsup.ids import ModelId
from qmsup.listener.body import Environ
from qmsup.listener.catalog import Catalog
from qmsup.units import Seconds

MOST_STREAMS = 8
"""Of one worker, which has 32 threads."""
_LINES = 200
_LOOK_AGAIN = Seconds(0.25)
_RETRY = Seconds(10.0)
_TEXT = "text/plain; charset=utf-8"

ENDING = threading.Event()
"""Set when the worker ends: its streams do, too."""
_free = threading.BoundedSemaphore(MOST_STREAMS)


def recent(catalog: Catalog, name: str) -> Response:
    """The end of one model's log, or of each model's that this listener shows.

    Raises:
        RequestError: there is no such model here.
    """
    page = _Page(has_headers=not name)
    text = b"".join(
        page.add(model, last_lines_if_any(places.log_file(model), _LINES))
        for model in _models(catalog, name)
    )
    return Response(text, content_type=_TEXT, headers={"Cache-Control": "no-store"})


def stream(catalog: Catalog, name: str, environ: Environ) -> Response:
    """The same, and then whatever is written from now on.

    Raises:
        RequestError: there is no such model here, or enough are reading already.
    """
    models = _models(catalog, name)
    if environ["REQUEST_METHOD"] == "HEAD":
        shown: Iterable[bytes] = ()
    elif _free.acquire(blocking=False):
        shown = _Stream(models, environ, has_headers=not name)
    else:
        message = f"{MOST_STREAMS} log streams are open on this worker: close one, or read /logs"
        raise RequestError(Refusal(code=Code.QUEUE_FULL, message=message, retry_after=_RETRY))
    return Response(
        shown,
        content_type=_TEXT,
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        direct_passthrough=True,
    )


class _Page:
    """Lines, under a header whenever they are another model's than the ones before."""

    def __init__(self, *, has_headers: bool) -> None:
        self._has_headers = has_headers
        self._model: ModelId | None = None

    def add(self, model: ModelId, lines: Sequence[bytes]) -> bytes:
        if not lines:
            return b""
        head = b""
        if self._has_headers and model != self._model:
            head = f"{'' if self._model is None else chr(10)}==> {model} <==\n".encode()
            self._model = model
        return head + b"\n".join(lines) + b"\n"


class _Stream:
    """Iterated over by the server in a thread of its pool; closed when the client is gone, whatever happened."""

    def __init__(self, models: Sequence[ModelId], environ: Environ, *, has_headers: bool) -> None:
        self._models = models
        self._page = _Page(has_headers=has_headers)
        self._followers: dict[ModelId, Follower] = {}
        client = environ.get("gunicorn.socket")
        self._client = client if isinstance(client, socket.socket) else None
        self._is_closed = False

    def __iter__(self) -> Iterator[bytes]:
        yield b""  # has the head sent, though no line may come for long
        for model in self._models:
            follower = self._followers[model] = Follower(places.log_file(model))
            if lines := follower.last_lines(_LINES):
                yield self._page.add(model, lines)
        while not ENDING.is_set() and not self._has_client_gone():
            for model, follower in self._followers.items():
                if lines := follower.new_lines():
                    yield self._page.add(model, lines)
            if not any(follower.has_more for follower in self._followers.values()):
                ENDING.wait(_LOOK_AGAIN)

    def close(self) -> None:
        """Give everything back. May be repeated."""
        if not self._is_closed:
            self._is_closed = True
            _free.release()
            for follower in self._followers.values():
                follower.close()

    def _has_client_gone(self) -> bool:
        """Without this a stream with nothing to say would never notice."""
        if self._client is None:
            return False
        poll = select.poll()
        try:
            poll.register(self._client, select.POLLIN | select.POLLRDHUP)
            events = poll.poll(0)
            return any(event & ~select.POLLIN for _, event in events) or (
                bool(events) and not self._client.recv(1, socket.MSG_PEEK)
            )
        except (OSError, ValueError):
            return True


def _models(catalog: Catalog, name: str) -> tuple[ModelId, ...]:
    if not name:
        return catalog.ids()
    model = catalog.named(name).id
    if (peer := catalog.peers.get(model)) is not None:
        message = f"model {name} is the peer {peer.name}'s, and so is its log; ask there"
        raise RequestError(Refusal(code=Code.MODEL_NOT_FOUND, message=message))
    return (model,)
