"""A listener's app called without a server: a catalogue to ask, requests to ask with, answers to look at."""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from http.client import parse_headers
from typing import Any
from urllib.parse import unquote_to_bytes

from qmsup.errors import QmsupError
from qmsup.ids import ListenerName, ModelId
from qmsup.listener.app import App, create
from qmsup.listener.relay.order import RelayOrder
from qmsup.listener.relay.watch import Watch
from qmsup.spec import FilterSpec, GroupSpec, KeySpec, ListenerSpec, ModelSpec, Spec
from qmsup.units import Seconds
from qmsup.wire.listening import Finished

MAIN = ListenerName("main")
AGENTS = ListenerName("agents")
LOCKED = ListenerName("locked")
CHAT = "/v1/chat/completions"


def _model(called: str, **more: Any) -> ModelSpec:
    return ModelSpec(id=ModelId(called), argv=("llama-server",), **more)


_MODELS = (
    _model("chat", aliases=("gpt-4o-mini",), name="Chat", description="for talking"),
    _model("coder"),
    _model("org/deep/model"),
    _model("renamed", use_model_name='in "side"'),
    _model(
        "filtered",
        aliases=("filtered:high",),
        unlisted=True,
        filters=FilterSpec(
            strip=("top_k", "temperature"),
            put={"temperature": "0.5", "stop": '["a"]'},
            put_by_name={"filtered:high": {"effort": '"high"', "stop": "null", "stream": "true"}},
        ),
    ),
    _model("hidden", unlisted=True, aliases=("secret",)),
)

SCOPED = frozenset({ModelId("chat"), ModelId("org/deep/model")})
KEYS = (
    KeySpec(key="sk-first"),
    KeySpec(key="sk-schlüssel"),
    KeySpec(key="sk-scoped", name="laptop", models=SCOPED, admin=False),
    KeySpec(key=f"sha256:{sha256(b'sk-hashed').hexdigest()}", models=SCOPED),
)

SPEC = Spec(
    models={model.id: model for model in _MODELS},
    groups=(GroupSpec(id="coding", members=(ModelId("coder"),)),),
    listeners={
        MAIN: ListenerSpec(name=MAIN),
        AGENTS: ListenerSpec(name=AGENTS, groups=("coding",)),
        LOCKED: ListenerSpec(name=LOCKED, api_keys=KEYS),
    },
    max_body=4 * 1024 * 1024,
)


@dataclass
class StandInLink:
    """Answers questions from a table, and remembers them."""

    answers: dict[str, object] = field(default_factory=lambda: {"ping": {}})
    asked: list[tuple[str, Mapping[str, object]]] = field(default_factory=list)
    trouble: QmsupError | None = None
    told: list[Finished] = field(default_factory=list)

    def note(self, finished: Finished) -> None:
        self.told.append(finished)

    def ask(self, verb: str, args: Mapping[str, object], timeout: Seconds) -> object:
        self.asked.append((verb, args))
        if self.trouble is not None:
            raise self.trouble
        return self.answers.get(verb, {})


@dataclass(frozen=True)
class Answer:
    """What an app answered by itself."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def code(self) -> str:
        return str(self.error["code"])

    @property
    def error(self) -> dict[str, str]:
        error: dict[str, str] = json.loads(self.body)["error"]
        return error


def app_of(listener: ListenerName = MAIN, link: StandInLink | None = None) -> App:
    return create(SPEC, listener, link or StandInLink())


def environ_of(
    method: str,
    target: str,
    body: bytes | io.BytesIO = b"",
    headers: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A WSGI environ as a server makes it. A stream as body has no declared length: it is sent in chunks."""
    path, _, query = target.partition("?")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method,
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
        "QUERY_STRING": query,
        "RAW_URI": target,
        "SCRIPT_NAME": "",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "8080",
        "REMOTE_ADDR": "127.0.0.1",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": "127.0.0.1:8080",
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body) if isinstance(body, bytes) else body,
        "wsgi.input_terminated": True,
        "wsgi.errors": io.StringIO(),
    }
    if not isinstance(body, bytes):
        environ["HTTP_TRANSFER_ENCODING"] = "chunked"
    elif body or method == "POST":
        environ["CONTENT_LENGTH"] = str(len(body))
    for name, value in (headers or {}).items():
        key = name.upper().replace("-", "_")
        environ[key if key in {"CONTENT_LENGTH", "CONTENT_TYPE"} else f"HTTP_{key}"] = value
    return environ


def call(app: App, environ: dict[str, Any]) -> RelayOrder | Answer:
    started: list[tuple[str, list[tuple[str, str]]]] = []
    result = app(environ, lambda status, headers: started.append((status, headers)))
    if isinstance(result, RelayOrder):
        assert started == []
        return result
    assert not isinstance(result, Watch)
    body = b"".join(result)
    ((status, headers),) = started
    return Answer(int(status.split()[0]), _one_each(headers), body)


def ordered(
    body: bytes | io.BytesIO,
    *,
    target: str = CHAT,
    headers: Mapping[str, str] | None = None,
    app: App | None = None,
) -> RelayOrder:
    """The order a POST gives; it must give one."""
    result = call(app or app_of(), environ_of("POST", target, body, headers))
    assert isinstance(result, RelayOrder), result
    return result


def refused(
    body: bytes | io.BytesIO,
    *,
    target: str = CHAT,
    headers: Mapping[str, str] | None = None,
    app: App | None = None,
) -> Answer:
    """The refusal a POST gives; it must give one."""
    result = call(app or app_of(), environ_of("POST", target, body, headers))
    assert isinstance(result, Answer), result
    assert set(result.error) == {"message", "type", "param", "code"}
    return result


def content(order: RelayOrder) -> bytes:
    """The order's body, read and closed when it is a file."""
    if isinstance(order.body, bytes):
        return order.body
    with order.body as file:
        assert file.tell() == 0
        return file.read()


def parsed(head: bytes) -> tuple[str, dict[str, str]]:
    """Request line and headers, each once, names in lower case."""
    line, _, rest = head.partition(b"\r\n")
    assert rest.endswith(b"\r\n")
    assert not rest.endswith(b"\r\n\r\n")
    headers = parse_headers(io.BytesIO(rest + b"\r\n"))
    assert len(headers.items()) == rest.count(b"\r\n") == rest.count(b"\n"), head
    return line.decode("latin-1"), _one_each(headers.items(), lower=True)


def _one_each(headers: Any, *, lower: bool = False) -> dict[str, str]:
    pairs = [(name.lower() if lower else name, value) for name, value in headers]
    assert len(dict(pairs)) == len(pairs), f"a header twice: {pairs}"
    return dict(pairs)
