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

import requests
from urllib3.exceptions import HTTPError

from qmsup.core.fleet.sights import HostKind, Sight
from qmsup.ids import ModelId
from qmsup.spec import HostSpec
from qmsup.units import Seconds
from qmsup.upstream.trust import context_of
from qmsup.upstream.trusting import Trusting, cause_of

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
        self._scheme = "http" if host.trust is None else "https"
        self._contexts: dict[ModelId, int] = {}
        self._asked_for: frozenset[ModelId] = frozenset()
        self._asked_at = float("-inf")

    def look(self) -> Sight:
        """How the host is now."""
        host, at = self._host, Seconds(time.monotonic())
        with requests.Session() as session:
            try:
                self._prepare(session)
            except OSError as error:
                because = f"the certificates of {host.trust} cannot be read ({error})"
                return Sight(host=host.name, at=at, is_healthy=False, because=because)
            if because := self._trouble(session):
                return Sight(host=host.name, at=at, is_healthy=False, because=because)
            kind, loaded = self._loaded(session)
            self._read_contexts(session, kind, loaded, at)
            slots, busy = self._slots(session, kind)
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

    def _prepare(self, session: requests.Session) -> None:
        host = self._host
        session.trust_env = False  # a proxy of the environment is not for these
        session.headers["Connection"] = "close"
        if host.api_key:
            session.headers["Authorization"] = f"Bearer {host.api_key}"
        if host.trust is not None:
            self._trusts = self._trusts or context_of(host.trust)
            session.mount("https://", Trusting(self._trusts))

    def _trouble(self, session: requests.Session) -> str:
        try:
            with session.get(self._url("/health"), timeout=_PATIENCE) as answer:
                status = answer.status_code
        except requests.exceptions.SSLError as error:
            self._trusts = None  # the file may have been renewed
            return cause_of(error)
        except requests.Timeout:
            return f"/health did not answer within {_PATIENCE:g} s"
        except requests.ConnectionError:
            return "it cannot be reached"
        except requests.RequestException as error:
            return f"/health cannot be read ({type(error).__name__})"
        return "" if status == _OK else f"/health answered {status}"

    def _loaded(self, session: requests.Session) -> tuple[HostKind, frozenset[ModelId]]:
        running = self._read(session, "/running").get("running")
        if isinstance(running, list):
            ready = (_fields(e) for e in running)
            names = {e.get("model") for e in ready if e.get("state") == "ready"}
            return HostKind.QMSUP, _names(names)
        listed = [_fields(e) for e in _list(self._read(session, "/v1/models").get("data"))]
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
        self, session: requests.Session, kind: HostKind, loaded: frozenset[ModelId], at: Seconds
    ) -> None:
        if loaded == self._asked_for and at < self._asked_at + _ASKED_AGAIN:
            return
        self._asked_for, self._asked_at = loaded, at
        self._contexts = {}
        if kind is HostKind.LLAMA_SERVER:
            size = self._context(session, "/props")
            self._contexts = dict.fromkeys(loaded, size) if size else {}
            return
        for model in loaded & frozenset(self._host.models):
            size = self._context(session, f"/props?model={quote(model, safe='')}")
            if size:
                self._contexts[model] = size

    def _context(self, session: requests.Session, path: str) -> int:
        settings = _fields(self._read(session, path).get("default_generation_settings"))
        return _count(settings.get("n_ctx")) or 0

    def _slots(self, session: requests.Session, kind: HostKind) -> tuple[int | None, int | None]:
        if kind is not HostKind.LLAMA_SERVER:
            return None, None
        slots = [_fields(slot) for slot in _list(self._get(session, "/slots"))]
        if slots:
            return len(slots), sum(slot.get("is_processing") is True for slot in slots)
        return _count(self._read(session, "/props").get("total_slots")), None

    def _read(self, session: requests.Session, path: str) -> _Fields:
        return _fields(self._get(session, path))

    def _get(self, session: requests.Session, path: str) -> object:
        with (
            contextlib.suppress(requests.RequestException, HTTPError, ValueError, RecursionError),
            session.get(self._url(path), timeout=_PATIENCE, stream=True) as answer,
        ):
            if answer.status_code == _OK:
                body = answer.raw.read(_MOST, decode_content=True)
                found: object = json.loads(body)
                return found
        return None

    def _url(self, path: str) -> str:
        return f"{self._scheme}://{self._host.upstream}{path}"


def _fields(value: object) -> _Fields:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _names(values: set[object]) -> frozenset[ModelId]:
    return frozenset(ModelId(value) for value in values if isinstance(value, str))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
