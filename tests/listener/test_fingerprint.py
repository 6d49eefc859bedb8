"""Which conversation a request belongs to."""

import json

import pytest

from qmsup.listener.relay.order import RelayOrder
from tests.support.listener_app import CHAT, app_of, call, environ_of, ordered

HEADERS = ["X-Session-ID", "X-OpenWebUI-Chat-Id", "X-Litellm-Session-Id", "X-Conversation-Id"]
SYSTEM = {"role": "system", "content": "be brief"}
HELLO = {"role": "user", "content": "hello"}
REPLY = {"role": "assistant", "content": "hi"}
BYE = {"role": "user", "content": "bye"}


def _conversation(headers: dict[str, str] | None = None, **fields: object) -> str:
    return ordered(json.dumps({"model": "chat", **fields}).encode(), headers=headers).conversation


@pytest.mark.parametrize("first", range(4))
def test_the_first_header_that_names_it_wins(first: int) -> None:
    headers = {name: f" {name} " for name in HEADERS[first:]} | dict.fromkeys(HEADERS[:first], " ")

    assert _conversation(headers, prompt_cache_key="k", messages=[HELLO]) == HEADERS[first]


def test_then_the_body_names_it() -> None:
    metadata = {"session_id": "s", "other": [1]}

    assert _conversation(prompt_cache_key="k", metadata=metadata, messages=[HELLO]) == "k"
    assert _conversation(metadata=metadata, messages=[HELLO]) == "s"


def test_all_turns_of_a_conversation_look_alike() -> None:
    first = _conversation(messages=[SYSTEM, HELLO])

    assert first.startswith("f-")
    assert _conversation(messages=[SYSTEM, HELLO, REPLY, BYE], stream=True) == first
    assert _conversation(messages=[SYSTEM, BYE]) != first
    assert _conversation(messages=[HELLO]) != first
    assert _conversation(messages=[SYSTEM, HELLO], system="other") != first
    assert "hello" not in first


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"messages": []},
        {"messages": [SYSTEM]},
        {"messages": "hello"},
        {"messages": [1, 2]},
        {"messages": {"role": "user"}},
        {"prompt_cache_key": 7},
        {"metadata": "x"},
        {"metadata": {"session_id": 3}},
        {"metadata": {}},
        {"messages": [{"role": 1, "content": None}]},
    ],
)
def test_a_body_without_a_beginning_has_no_conversation(fields: dict[str, object]) -> None:
    assert _conversation(None, **fields) == ""


def test_pictures_count_too() -> None:
    picture = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:x"}}]}

    assert _conversation(messages=[picture]).startswith("f-")


def test_a_name_without_an_end_is_hashed() -> None:
    named = _conversation({"X-Session-ID": "x" * 5000})

    assert named.startswith("h-")
    assert len(named) < 50
    assert _conversation({"X-Session-ID": "x" * 5001}) != named


def _client(
    headers: dict[str, str] | None = None, address: str = "10.0.0.7", **fields: object
) -> str:
    environ = environ_of(
        "POST", CHAT, json.dumps({"model": "chat", **fields}).encode(), headers
    ) | {"REMOTE_ADDR": address}
    order = call(app_of(), environ)
    assert isinstance(order, RelayOrder)
    return order.client


def test_clients_without_a_conversation_are_told_apart_by_address_and_key() -> None:
    who = [
        _client(),
        _client(address="10.0.0.8"),
        _client({"Authorization": "Bearer secret-1"}),
        _client({"Authorization": "Bearer secret-2"}),
        _client({"X-Api-Key": "secret-1"}),
        _client({"X-Forwarded-For": "192.0.2.1"}),
        _client({"X-Forwarded-For": "192.0.2.2"}),
    ]

    assert len(set(who)) == len(who)
    assert _client({"Authorization": "Bearer secret-1"}) == who[2]
    assert all(len(digest) == 16 for digest in who)
    assert not any("secret" in digest or "10.0" in digest for digest in who)


def test_who_is_asking_does_not_matter_where_the_conversation_is_known() -> None:
    assert _client({"X-Session-ID": "s"}) == ""
    assert _client(messages=[HELLO]) == ""


def test_nothing_is_made_up_of_a_client_that_is_not_known() -> None:
    assert _client(address="") == ""
