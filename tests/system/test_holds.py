"""Agents between two rounds: their model is kept for them, until the hold is over or somebody would not wait."""

from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.support.box import Box, fake, serving, until
from tests.support.streams import RawStream

pytestmark = pytest.mark.system

FOR_LONG = "60000"


@pytest.fixture
def box() -> Iterator[Box]:
    models = {
        "agent": fake("--name agent --finish-reason tool_calls"),
        "chat": fake("--name chat"),
    }
    with serving(models, sendLoadingState=True) as box:
        yield box


def ask(box: Box, model: str, **headers: str) -> requests.Response:
    """`hold_ms="5"` is the header X-QM-Hold-Ms: 5."""
    wishes = {f"X-QM-{name.replace('_', '-').title()}": value for name, value in headers.items()}
    return requests.post(
        box.url("/v1/chat/completions"),
        json={"model": model, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 3},
        headers=wishes,
        timeout=30,
    )


def reasons(box: Box) -> list[Any]:
    """Why whoever waits in the line does."""
    return [place["because"] for place in box.told("queue")["queue"]]


def held_for(box: Box, model: str) -> Any:
    return box.model(model)["hold_s"]


def test_a_tool_call_keeps_its_model_until_somebody_would_not_wait(box: Box) -> None:
    assert ask(box, "agent", hold_ms=FOR_LONG).status_code == 200
    until(lambda: held_for(box, "agent"), what="held")

    with RawStream(box, "chat", max_tokens=3) as patient:
        patient.until_seen(b": qm-status: waiting 1")
        assert reasons(box) == ["held"]
        assert box.states() == {"agent": "ready", "chat": "stopped"}
        table = box.run("ps").stdout
        assert "HOLD" in table

        hurried = ask(box, "chat", patience_ms="0")
        patient.until_seen(b"data: [DONE]")

    assert hurried.status_code == 200
    assert box.states() == {"agent": "stopped", "chat": "ready"}
    assert held_for(box, "agent") is None


def test_by_default_a_tool_call_holds_and_an_answer_does_not(box: Box) -> None:
    ask(box, "agent")
    until(lambda: held_for(box, "agent"), what="held after a tool call")
    ask(box, "chat", patience_ms="0")

    until(lambda: box.model("chat")["inflight"] == 0, what="the answer is over")
    assert held_for(box, "chat") is None


def test_the_end_of_a_hold_lets_the_other_in(box: Box) -> None:
    ask(box, "agent", hold_ms="700")
    until(lambda: held_for(box, "agent"), what="held")

    assert ask(box, "chat").status_code == 200

    waited = [x["because"] for x in box.decisions("request.waits")]
    assert waited == ["held"]
    assert box.states()["agent"] == "stopped"


def test_the_next_round_takes_the_hold_away(box: Box) -> None:
    ask(box, "agent", hold_ms=FOR_LONG)
    until(lambda: held_for(box, "agent"), what="held")

    ask(box, "agent", hold_ms="0")

    until(lambda: held_for(box, "agent") is None, what="held no longer")
    assert ask(box, "chat").status_code == 200
    assert box.decisions("request.waits") == []
