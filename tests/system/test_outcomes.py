"""What the scheduler is told of how real answers ended, for a model that calls tools."""

from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.support.box import Box, real, serving, until

pytestmark = pytest.mark.system

MESSAGES = [{"role": "user", "content": "hi"}]
SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}
LOOK = {"name": "look", "description": "looks", "parameters": SCHEMA}
TEXTS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": MESSAGES, "max_tokens": 4},
    "/v1/messages": {"messages": MESSAGES, "max_tokens": 4},
    "/v1/responses": {"input": "hi", "max_output_tokens": 4},
    "/v1/completions": {"prompt": "hi", "max_tokens": 4},
    "/completion": {"prompt": "hi", "n_predict": 4},
}
CALLS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {
        "messages": MESSAGES,
        "tools": [{"type": "function", "function": LOOK}],
        "tool_choice": "required",
    },
    "/v1/messages": {
        "messages": MESSAGES,
        "max_tokens": 1000,
        "tools": [{"name": "look", "description": "looks", "input_schema": SCHEMA}],
        "tool_choice": {"type": "any"},
    },
    "/v1/responses": {
        "input": "hi",
        "tools": [{"type": "function", **LOOK}],
        "tool_choice": "required",
    },
}


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    with serving({"agent": real("agent", tool_calls=0.1, eos_p=0.3)}) as box:
        yield box


def ask(box: Box, path: str, **fields: Any) -> requests.Response:
    body = {"model": "agent", "seed": 1, **fields}
    return requests.post(box.url(path), json=body, timeout=60)


def outcome_of(box: Box, answer: requests.Response) -> str:
    """The word that the listener sent, from its access log."""
    request = answer.headers["X-QM-Request-Id"]

    def lines() -> list[dict[str, Any]]:
        return [x for x in box.decisions("request") if x.get("request") == request]

    return str(until(lines, what="a line in the access log")[0]["outcome"])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", CALLS)
def test_a_call_of_a_tool_is_told(box: Box, path: str, *, stream: bool) -> None:
    answer = ask(box, path, **CALLS[path], stream=stream)

    assert answer.status_code == 200
    assert "look" in answer.text
    assert outcome_of(box, answer) == "tool_calls"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", TEXTS)
def test_a_text_is_finished(box: Box, path: str, *, stream: bool) -> None:
    answer = ask(box, path, **TEXTS[path], stream=stream)

    assert answer.status_code == 200
    assert outcome_of(box, answer) == "finished"


def test_a_text_of_a_chat_that_was_offered_tools_is_finished(box: Box) -> None:
    offer = {**CALLS["/v1/chat/completions"], "tool_choice": "none", "max_tokens": 4}

    assert outcome_of(box, ask(box, "/v1/chat/completions", **offer, stream=True)) == "finished"


def test_an_error_of_the_child_has_failed(box: Box) -> None:
    answer = ask(box, "/v1/chat/completions", messages="none")

    assert answer.status_code >= 400
    assert outcome_of(box, answer) == "failed"


def test_a_client_that_left_has_abandoned(box: Box) -> None:
    with box.chat("agent", stream=True, max_tokens=100_000, ignore_eos=True) as answer:
        next(answer.iter_lines())

    assert outcome_of(box, answer) == "abandoned"
