"""A prompt that seems too long is counted by the host it would go to, before its client is told so.

An estimate is off by half where a text is mostly blanks or figures. The host's own `/tokenize` knows better, and takes
milliseconds; it is asked in a thread of its own, and only about prompts that a client would be refused for.
"""

import contextlib
import json
import os
from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection

from qmsup.errors import Refusal
from qmsup.listener.asker import CountAt
from qmsup.listener.link import Link
from qmsup.listener.prompt_size import text_of_prompt
from qmsup.listener.relay.asks import remote_of
from qmsup.listener.relay.errands import Errands
from qmsup.listener.relay.held import Held
from qmsup.listener.relay.home import Guest
from qmsup.listener.relay.loop import Loop
from qmsup.listener.relay.order import RelayOrder, Remote
from qmsup.units import Seconds
from qmsup.wire.listening import Granted

_WITHIN = Seconds(5.0)
_MOST = 16 * 1024 * 1024
"""Bytes of an answer: a number for each token."""
_OK = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What counting takes.

    Attributes:
        held: every client that is held, and has not left.
    """

    loop: Loop
    link: Link
    errands: Errands
    held: Container[Guest]


class Counted:
    """Asks in a held client's place, and a second time if its prompt was counted meanwhile."""

    __slots__ = ("_desk", "_held", "_order", "_refusal", "_since")

    def __init__(self, desk: Desk, held: Held, order: RelayOrder) -> None:
        """Ask nothing yet."""
        self._desk = desk
        self._held = held
        self._order = order
        self._refusal: Refusal | None = None
        self._since = desk.loop.now

    @property
    def _is_over(self) -> bool:
        return self._held not in self._desk.held

    def on_place(self, place: int, *, was_ready: bool | None) -> None:
        """It waits; 1 = next."""
        self._held.on_place(place, was_ready=was_ready)

    def on_loading(self) -> None:
        """Its model is loading for it."""
        self._held.on_loading()

    def on_granted(self, grant: Granted) -> None:
        """The request may go."""
        self._held.on_granted(grant)

    def on_cut(self, refusal: Refusal, *, had_lapsed: bool = False) -> None:
        """The lease is void."""
        self._held.on_cut(refusal, had_lapsed=had_lapsed)

    def on_refused(self, refusal: Refusal, count_at: CountAt | None = None) -> None:
        """There will be no grant, unless its prompt turns out to be shorter."""
        is_counted = self._refusal is not None
        if count_at is None or is_counted or self._is_over or self._desk.errands.is_busy:
            self._held.on_refused(refusal)
            return
        self._refusal = refusal
        remote = remote_of(self._order, count_at.host)
        read = _reader_of(self._order)
        do = partial(_count, read, remote, count_at.upstream, self._order.model)
        self._desk.errands.run("counting", do, self._take)

    def _take(self, tokens: int | None) -> None:
        assert self._refusal is not None, "it was refused"
        if self._is_over:
            return
        if tokens is None:
            self._held.on_refused(self._refusal)
            return
        now = self._desk.loop.now
        ask = self._held.course.ask_counted(tokens, Seconds(now - self._since))
        if ask is not None:
            self._desk.link.request(ask, self, now)


def _reader_of(order: RelayOrder) -> Callable[[], bytes]:
    """What reads the body in another thread, whatever becomes of its file meanwhile."""
    body = order.body
    if isinstance(body, bytes):
        return lambda: body
    body.flush()
    file = os.fdopen(os.dup(body.fileno()), "rb")

    def read() -> bytes:
        with file:
            return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)

    return read


def _count(
    read: Callable[[], bytes], remote: Remote | None, upstream: str, model: str
) -> int | None:
    """How many tokens the prompt has; None = that could not be found out. Waits."""
    with contextlib.suppress(OSError, HTTPException, ValueError, RecursionError):
        asked = {"content": text_of_prompt(read()), "model": model, "add_special": True}
        door = _door(remote, upstream)
        try:
            prefix = "" if remote is None else remote.path.decode()
            headers = {"Content-Type": "application/json", **_headers(remote)}
            door.request("POST", f"{prefix}/tokenize", json.dumps(asked).encode(), headers)
            answer = door.getresponse()
            said = json.loads(answer.read(_MOST)) if answer.status == _OK else None
        finally:
            door.close()
        tokens = said.get("tokens") if isinstance(said, dict) else None
        return len(tokens) if isinstance(tokens, list) else None
    return None


def _door(remote: Remote | None, upstream: str) -> HTTPConnection:
    host, _, port = upstream.rpartition(":")
    host = host.strip("[]")
    if remote is None or remote.tls is None:
        return HTTPConnection(host, int(port), timeout=_WITHIN)
    return HTTPSConnection(host, int(port), timeout=_WITHIN, context=remote.tls.context)


def _headers(remote: Remote | None) -> dict[str, str]:
    """Our key for it."""
    lines = [] if remote is None else remote.lines.decode().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
