"""Who may ask."""

import pytest

from qmsup.listener.relay.order import RelayOrder
from tests.support.listener_app import (
    AGENTS,
    CHAT,
    LOCKED,
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


def test_a_port_without_keys_is_open_to_any_key() -> None:
    body = b'{"model":"coder"}'

    assert ordered(body, app=app_of(AGENTS)).model == "coder"
    assert ordered(body, headers={"Authorization": "Bearer x"}, app=app_of(AGENTS)).model == "coder"
