"""Who may ask."""

import json
from base64 import b64encode

import pytest

from qmsup.listener.relay.order import RelayOrder
from tests.support.listener_app import (
    AGENTS,
    CHAT,
    KEYS,
    LOCKED,
    Answer,
    StandInLink,
    app_of,
    call,
    environ_of,
    ordered,
    parsed,
    refused,
)

BODY = b'{"model":"chat"}'
UMLAUT = "sk-schlüssel".encode().decode("latin-1")
"""A key as it stands in an environ: bytes posing as Latin-1."""

GOOD: list[dict[str, str]] = [
    {"Authorization": "Bearer sk-first"},
    {"Authorization": "bearer  sk-first "},
    {"Authorization": "sk-first"},
    {"X-Api-Key": "sk-first"},
    {"X-Api-Key": UMLAUT},
    {"Authorization": f"Bearer {UMLAUT}"},
    {"Authorization": "Bearer wrong", "X-Api-Key": "sk-first"},
    {"Authorization": "Bearer sk-first", "X-Api-Key": "wrong"},
]
BAD: list[dict[str, str]] = [
    {},
    {"Authorization": ""},
    {"Authorization": "Bearer"},
    {"Authorization": "Bearer "},
    {"Authorization": "Bearer sk-firs"},
    {"Authorization": "Bearer sk-firstx"},
    {"Authorization": "Bearer SK-FIRST"},
    {"Authorization": "Basic sk-first"},
    {"Authorization": "Bearer sk-schlüssel"},
    {"Authorization": "Bearer \u20ac"},
    {"X-Api-Key": "Bearer sk-first"},
    {"X-Api-Key": "sk-first,sk-first"},
]


SCOPED = {"Authorization": "Bearer sk-scoped"}
HASHED = {"Authorization": "Bearer sk-hashed"}


def asked(method: str, path: str, headers: dict[str, str], body: bytes = b"") -> Answer:
    """What the port with keys answers by itself."""
    answer = call(app_of(LOCKED), environ_of(method, path, body, headers))
    assert not isinstance(answer, RelayOrder)
    return answer


@pytest.mark.parametrize("headers", GOOD)
def test_a_key_of_this_port_opens_it_and_goes_no_further(headers: dict[str, str]) -> None:
    order = ordered(BODY, headers=headers, app=app_of(LOCKED))

    assert parsed(order.head)[1].keys() == {"content-length", "connection"}


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ({"X-Api-Key": "sk-first"}, "1"),
        ({"X-Api-Key": UMLAUT}, "2"),
        ({"Authorization": "Bearer wrong", "X-Api-Key": UMLAUT}, "2"),
    ],
)
def test_which_key_it_was_is_known_by_its_place(headers: dict[str, str], key: str) -> None:
    assert ordered(BODY, headers=headers, app=app_of(LOCKED)).key == key


def test_without_keys_it_was_none() -> None:
    assert ordered(BODY, headers={"X-Api-Key": "sk-first"}).key == ""


@pytest.mark.parametrize("headers", BAD)
def test_anything_else_does_not(headers: dict[str, str]) -> None:
    answer = refused(BODY, headers=headers, app=app_of(LOCKED))

    assert (answer.status, answer.code) == (401, "invalid_api_key")
    assert answer.error["type"] == "authentication_error"
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_a_body_is_not_read_for_a_stranger() -> None:
    environ = environ_of("POST", CHAT, BODY)

    call(app_of(LOCKED), environ)

    assert environ["wsgi.input"].tell() == 0


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/health", 200),
        ("HEAD", "/health", 200),
        ("GET", "/favicon.ico", 204),
        ("GET", "/", 401),
        ("GET", "/v1/models", 401),
        ("GET", "/running", 401),
        ("GET", "/nowhere", 401),
        ("DELETE", "/v1/models", 401),
        ("POST", "/api/models/unload", 401),
    ],
)
def test_only_health_needs_no_key(method: str, path: str, status: int) -> None:
    answer = call(app_of(LOCKED), environ_of(method, path))

    assert not isinstance(answer, RelayOrder)
    assert answer.status == status


def test_of_a_hashed_key_only_the_key_itself_opens() -> None:
    digest = KEYS[3].key

    assert ordered(BODY, headers={"X-Api-Key": "sk-hashed"}, app=app_of(LOCKED)).key == "4"
    assert refused(BODY, headers={"X-Api-Key": digest}, app=app_of(LOCKED)).status == 401


@pytest.mark.parametrize(
    ("credentials", "status"),
    [("anyone:sk-first", 200), (":sk-first", 200), ("sk-first", 401), ("sk-first:", 401)],
)
def test_a_browser_sends_a_key_as_a_password(credentials: str, status: int) -> None:
    headers = {"Authorization": "Basic " + b64encode(credentials.encode()).decode()}

    assert asked("GET", "/v1/models", headers).status == status


def test_a_key_for_some_models_opens_these_alone() -> None:
    assert ordered(BODY, headers=SCOPED, app=app_of(LOCKED)).key == "laptop"
    for path, body in ((CHAT, b'{"model":"coder"}'), ("/upstream/coder/x", b"")):
        answer = refused(body, target=path, headers=SCOPED, app=app_of(LOCKED))
        assert (answer.status, answer.code) == (403, "model_not_allowed")
        assert answer.error["param"] == "model"
        assert "coder" in answer.error["message"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/models/org/deep/model", 200),
        ("/v1/models/coder", 403),
        ("/v1/models/nothing", 404),
        ("/logs/stream/coder", 403),
        ("/api/explain/coder", 403),
        ("/props?model=coder", 403),
    ],
)
def test_what_it_may_not_use_it_may_not_look_at(path: str, status: int) -> None:
    assert asked("GET", path, SCOPED).status == status


def test_it_sees_its_own_models_in_the_list() -> None:
    listed = json.loads(asked("GET", "/v1/models", SCOPED).body)["data"]

    assert [model["id"] for model in listed] == ["chat", "org/deep/model"]


def test_a_suggestion_names_none_of_the_others() -> None:
    answer = refused(b'{"model":"codr"}', headers=SCOPED, app=app_of(LOCKED))

    assert answer.status == 404
    assert "coder" not in answer.error["message"]


OPERATORS = [
    ("POST", "/api/models/load/chat"),
    ("POST", "/api/models/unload/chat"),
    ("POST", "/api/models/unload"),
    ("POST", "/api/reload"),
    ("POST", "/api/leases"),
    ("GET", "/unload"),
]


@pytest.mark.parametrize(("method", "path"), OPERATORS)
def test_the_operators_business_takes_a_key_of_the_operators(method: str, path: str) -> None:
    body = b'{"model":"chat"}' if path == "/api/leases" else b""

    assert asked(method, path, SCOPED, body).status == 401
    assert asked(method, path, {"X-Api-Key": "sk-first"}, body).status == 200
    assert asked(method, path, {"X-Api-Key": "sk-hashed"}, body).status == 200


@pytest.mark.parametrize(("method", "path"), OPERATORS)
@pytest.mark.parametrize(
    ("remote", "headers", "passes"),
    [
        ("127.0.0.1", {}, True),
        ("::1", {}, True),
        ("192.0.2.7", {}, False),
        ("127.0.0.1", {"X-Forwarded-For": "192.0.2.7"}, False),
        ("127.0.0.1", {"Via": "1.1 nginx"}, False),
        ("127.0.0.1", {"X-Real-Ip": "127.0.0.1"}, False),
        ("127.0.0.1", {"Origin": "http://evil.example"}, False),
        ("127.0.0.1", {"Origin": "http://127.0.0.1:8080"}, True),
        ("127.0.0.1", {"Sec-Fetch-Site": "cross-site"}, False),
        ("127.0.0.1", {"Sec-Fetch-Site": "same-origin"}, True),
        ("127.0.0.1", {"Sec-Fetch-Site": "none", "Host": "[::1]:8080"}, True),
        ("127.0.0.1", {"Origin": "http://evil.example", "Host": "evil.example"}, False),
        ("127.0.0.1", {"Origin": "http://localhost:80", "Host": "localhost:80"}, True),
    ],
)
def test_without_keys_it_is_for_programs_of_this_machine(
    method: str, path: str, remote: str, headers: dict[str, str], *, passes: bool
) -> None:
    body = b'{"model":"chat"}' if path == "/api/leases" else b""
    environ = environ_of(method, path, body, headers) | {"REMOTE_ADDR": remote}

    answer = call(app_of(), environ)

    assert not isinstance(answer, RelayOrder)
    assert answer.status == (200 if passes else 401)


def test_a_key_for_some_models_unloads_no_others() -> None:
    link = StandInLink()

    call(app_of(LOCKED, link), environ_of("POST", "/api/models/unload", b"", HASHED))

    assert link.asked == [("unload", {"models": ["chat", "org/deep/model"]})]


def test_unloading_by_get_is_not_for_others_even_with_a_key_nor_for_a_head() -> None:
    link = StandInLink()
    key = {"X-Api-Key": "sk-first"}
    elsewhere = environ_of("GET", "/unload", b"", key) | {"REMOTE_ADDR": "192.0.2.7"}

    answer = call(app_of(LOCKED, link), elsewhere)
    looked = call(app_of(LOCKED, link), environ_of("HEAD", "/unload", b"", key))

    assert not isinstance(answer, RelayOrder)
    assert not isinstance(looked, RelayOrder)
    assert (answer.status, looked.status, link.asked) == (401, 200, [])


def test_a_port_without_keys_is_open_to_any_key() -> None:
    body = b'{"model":"coder"}'

    assert ordered(body, app=app_of(AGENTS)).model == "coder"
    assert ordered(body, headers={"Authorization": "Bearer x"}, app=app_of(AGENTS)).model == "coder"
