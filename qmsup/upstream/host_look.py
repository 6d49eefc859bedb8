"""One look at a host on another machine: whether it is well, and what it has loaded. Waits, so it has its own thread.

llama-server, its router and another qmsup are told apart by what they answer, so nobody has to say which one it is.
Each answer may be anything: what cannot be read counts as not told.
"""

import contextlib
import json
import ssl
import time
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from qmsup.core.fleet.sights import HostKind, Sight
from qmsup.ids import ModelId
from qmsup.spec import HostSpec
from qmsup.units import Seconds
from qmsup.upstream.inquiry import Inquirer, NoAnswerError
from qmsup.upstream.trust import context_of

_PATIENCE: Final = Seconds(2.0)
"""For each answer."""
_MOST = 4 * 1024 * 1024
_OK = 200
_ASKED_AGAIN = Seconds(60.0)
"""A context's size changes with a restart of its server only, which may go unseen."""

_Fields = Mapping[str, object]


class Looker:
    """Looks at one host, again and again. For one thread at a time."""

    def __init__(self, host: HostSpec) -> None:
        """Look at nothing yet."""
        self._host = host
        self._trusts: ssl.SSLContext | None = None
        self._contexts: dict[ModelId, int] = {}
        self._asked_for: frozenset[ModelId] = frozenset()
        self._asked_at = float("-inf")

    def look(self) -> Sight:
        """How the host is now."""
        host, at = self._host, Seconds(time.monotonic())
        try:
            asking = self._inquirer()
        except OSError as error:
            because = f"the certificates of {host.trust} cannot be read ({error})"
            return Sight(host=host.name, at=at, is_healthy=False, because=because)
        if because := self._trouble(asking):
            return Sight(host=host.name, at=at, is_healthy=False, because=because)
        kind, loaded = self._loaded(asking)
        self._read_contexts(asking, kind, loaded, at)
        slots, busy = self._slots(asking, kind)
        contexts = {model: size for model, size in self._contexts.items() if model in loaded}
        return Sight(
            host=host.name,
            at=at,
            is_healthy=True,
            kind=kind,
            loaded=loaded,
            contexts=contexts,
            slots=slots,
            busy=busy,
        )

    def _inquirer(self) -> Inquirer:
        host = self._host
        if host.trust is not None:
            self._trusts = self._trusts or context_of(host.trust)
        return Inquirer(
            where=host.upstream, tls=self._trusts, api_key=host.api_key, within=_PATIENCE
        )

    def _trouble(self, asking: Inquirer) -> str:
        try:
            status = asking.status("/health")
        except NoAnswerError as error:
            if error.is_distrust:
                self._trusts = None  # the file may have been renewed
            return str(error)
        return "" if status == _OK else f"/health answered {status}"

    def _loaded(self, asking: Inquirer) -> tuple[HostKind, frozenset[ModelId]]:
        running = self._read(asking, "/running").get("running")
        if isinstance(running, list):
            ready = (_fields(e) for e in running)
            names = {e.get("model") for e in ready if e.get("state") == "ready"}
            return HostKind.QMSUP, _names(names)
        listed = [_fields(e) for e in _list(self._read(asking, "/v1/models").get("data"))]
        states = {e.get("id"): _fields(e.get("status")).get("value") for e in listed}
        if any(state is not None for state in states.values()):
            resident = {name for name, state in states.items() if state == "loaded"}
            return HostKind.ROUTER, _names(resident)
        aliases = {alias for e in listed for alias in _list(e.get("aliases"))}
        loaded = _names({*states, *aliases})
        if listed and len(self._host.models) == 1:
            # It has one model, and answers to any name.
            loaded |= frozenset(self._host.models)
        return HostKind.LLAMA_SERVER, loaded

    def _read_contexts(
        self, asking: Inquirer, kind: HostKind, loaded: frozenset[ModelId], at: Seconds
    ) -> None:
        if loaded == self._asked_for and at < self._asked_at + _ASKED_AGAIN:
            return
        self._asked_for, self._asked_at = loaded, at
        self._contexts = {}
        if kind is HostKind.LLAMA_SERVER:
            size = self._context(asking, "/props")
            self._contexts = dict.fromkeys(loaded, size) if size else {}
            return
        for model in loaded & frozenset(self._host.models):
            size = self._context(asking, f"/props?model={quote(model, safe='')}")
            if size:
                self._contexts[model] = size

    def _context(self, asking: Inquirer, path: str) -> int:
        settings = _fields(self._read(asking, path).get("default_generation_settings"))
        return _count(settings.get("n_ctx")) or 0

    def _slots(self, asking: Inquirer, kind: HostKind) -> tuple[int | None, int | None]:
        if kind is not HostKind.LLAMA_SERVER:
            return None, None
        slots = [_fields(slot) for slot in _list(self._get(asking, "/slots"))]
        if slots:
            return len(slots), sum(slot.get("is_processing") is True for slot in slots)
        return _count(self._read(asking, "/props").get("total_slots")), None

    def _read(self, asking: Inquirer, path: str) -> _Fields:
        return _fields(self._get(asking, path))

    def _get(self, asking: Inquirer, path: str) -> object:
        with contextlib.suppress(NoAnswerError, ValueError, RecursionError):
            answer = asking.get(path, _MOST)
            if answer.status == _OK:
                found: object = json.loads(answer.body)
                return found
        return None


def _fields(value: object) -> _Fields:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _names(values: set[object]) -> frozenset[ModelId]:
    return frozenset(ModelId(value) for value in values if isinstance(value, str))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
