"""The official SDKs against the real llama-server: through qmsup they get what they get from the child itself."""

import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from pydantic import BaseModel

from tests.support.box import Box, real, serving
from tests.support.rendering import renderer

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]

MODEL, CALLER = "talker", "agent"
MESSAGES: list[Any] = [{"role": "user", "content": "hi"}]
SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}
LOOK: dict[str, Any] = {"name": "look", "description": "looks", "parameters": SCHEMA}
OFFER: list[Any] = [{"type": "function", "function": LOOK}]
SAME: dict[str, Any] = {"temperature": 0, "seed": 7}
SEEDED: dict[str, Any] = {"seed": 1}
"""For calls: the likeliest word of the tiny model is never one."""
BROKEN: dict[str, Any] = {
    "cmd": "sh -c 'sleep 0.3; echo no such file >&2; exit 3' ${PORT}",
    "kind": "generic",
    "sendLoadingState": True,
}
VOLATILE = {
    "id",
    "created",
    "created_at",
    "completed_at",
    "timings",
    "item_id",
    "call_id",
    "system_fingerprint",
}
"""What is another at each answer: ids and times."""
CHANGING = re.compile(rb'"(?:id|created|timings)":(?:"[^"]*"|[0-9]+|{[^}]*})')


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """Both SDKs, of qmsup and, per model, of the child that answers it."""

    box: Box
    openai: openai.OpenAI
    anthropic: anthropic.Anthropic

    def direct(self, model: str) -> str:
        """Where the model's child listens."""
        return f"http://127.0.0.1:{self.box.model(model)['port']}"


@pytest.fixture(scope="module")
def clients() -> Iterator[Clients]:
    models = {
        MODEL: real(MODEL, args="-c 2048 -np 1"),
        CALLER: real(CALLER, tool_calls=0.1, eos_p=0.3, args="-c 2048 -np 1"),
        "vectors": real("vectors", args="-c 2048 -np 1 --embeddings --pooling mean"),
        "paint": renderer(),
        **dict.fromkeys(("broken", "broken too"), BROKEN),
    }
    groups = {"all": {"members": list(models), "swap": False}}
    with (
        serving(models, groups=groups) as box,
        openai.OpenAI(base_url=box.url("/v1"), api_key="none", max_retries=0) as one,
        anthropic.Anthropic(base_url=box.url(), api_key="none", max_retries=0) as other,
    ):
        yield Clients(box=box, openai=one, anthropic=other)


def lasting(value: object) -> object:
    """What two answers to one question have in common."""
    match value:
        case BaseModel():
            return lasting(value.model_dump())
        case dict():
            return {k: lasting(v) for k, v in value.items() if k not in VOLATILE}
        case list():
            return [lasting(v) for v in value]
        case _:
            return value


def same(clients: Clients, ask: Callable[[openai.OpenAI], Any], *, model: str = MODEL) -> Any:
    """The answer by qmsup, once it is known to be the child's own."""
    ask(clients.openai)  # from then on the child has the prompt in its cache both times
    told = ask(clients.openai)
    url = f"{clients.direct(model)}/v1"
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as direct:
        assert lasting(told) == lasting(ask(direct))
    return told


def same_of_anthropic(
    clients: Clients, ask: Callable[[anthropic.Anthropic], Any], *, model: str = MODEL
) -> Any:
    """The same for the other SDK."""
    ask(clients.anthropic)
    told = ask(clients.anthropic)
    url = clients.direct(model)
    with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0) as direct:
        assert lasting(told) == lasting(ask(direct))
    return told


def test_a_chat(clients: Clients) -> None:
    said = same(
        clients,
        lambda c: c.chat.completions.create(model=MODEL, messages=MESSAGES, max_tokens=8, **SAME),
    )

    assert MODEL in said.choices[0].message.content


def test_a_chat_as_a_stream(clients: Clients) -> None:
    chunks = same(
        clients,
        lambda c: list(
            c.chat.completions.create(
                model=MODEL,
                messages=MESSAGES,
                max_tokens=8,
                stream=True,
                stream_options={"include_usage": True},
                **SAME,
            )
        ),
    )

    assert MODEL in "".join(x.choices[0].delta.content or "" for x in chunks if x.choices)
    assert chunks[-1].usage.completion_tokens > 0


def test_the_bytes_are_the_same_but_for_ids_and_times(clients: Clients) -> None:
    def ask(client: openai.OpenAI, *, stream: bool) -> bytes:
        raw = client.chat.completions.with_raw_response.create(
            model=MODEL, messages=MESSAGES, max_tokens=8, stream=stream, **SAME
        )
        raw.http_response.read()
        return CHANGING.sub(b"", raw.http_response.content)

    url = f"{clients.direct(MODEL)}/v1"
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as direct:
        for stream in (False, True):
            ask(clients.openai, stream=stream)
            told = ask(clients.openai, stream=stream)
            assert MODEL.encode() in told
            assert told == ask(direct, stream=stream)


def test_a_call_of_a_tool(clients: Clients) -> None:
    said = same(
        clients,
        lambda c: c.chat.completions.create(
            model=CALLER,
            messages=MESSAGES,
            tools=OFFER,
            tool_choice="required",
            **SEEDED,
        ),
        model=CALLER,
    )

    assert said.choices[0].finish_reason == "tool_calls"
    assert said.choices[0].message.tool_calls[0].function.name == "look"


def test_a_completion(clients: Clients) -> None:
    said = same(
        clients, lambda c: c.completions.create(model=MODEL, prompt="hi", max_tokens=4, **SAME)
    )

    assert said.choices[0].text


@pytest.mark.parametrize("stream", [False, True])
def test_a_response(clients: Clients, *, stream: bool) -> None:
    def ask(client: openai.OpenAI) -> Any:
        told: Any = client.responses.create(
            model=MODEL,
            input="hi",
            max_output_tokens=8,
            temperature=0,
            extra_body={"seed": 7},
            stream=stream,
        )
        return list(told) if stream else told

    said = same(clients, ask)

    told = said[-1].response if stream else said
    assert told.status in {"completed", "incomplete"}
    assert MODEL in told.output_text


def test_embeddings_are_the_same_bytes(clients: Clients) -> None:
    def ask(client: openai.OpenAI) -> bytes:
        raw = client.embeddings.with_raw_response.create(
            model="vectors", input=["one", "two"], encoding_format="float"
        )
        return bytes(raw.content)

    told = ask(clients.openai)
    url = f"{clients.direct('vectors')}/v1"
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as direct:
        assert told == ask(direct)
    vectors = clients.openai.embeddings.create(model="vectors", input="one").data
    assert len(vectors[0].embedding) == 64


def test_images(clients: Clients) -> None:
    told = clients.openai.images.generate(model="paint", prompt="a cat", n=1)

    assert told.data
    assert base64.b64decode(told.data[0].b64_json or "")[:4] == b"\x89PNG"


def test_an_image_is_edited(clients: Clients) -> None:
    picture = ("cat.png", b"\x89PNG\r\n\x1a\n" + bytes(100_000), "image/png")

    told = clients.openai.images.edit(model="paint", image=picture, prompt="a dog")

    assert told.data


def test_models_are_listed_and_found(clients: Clients) -> None:
    assert [m.id for m in clients.openai.models.list()] == [
        MODEL,
        CALLER,
        "vectors",
        "paint",
        "broken",
        "broken too",
    ]
    assert clients.openai.models.retrieve(MODEL).object == "model"
    with pytest.raises(openai.NotFoundError):
        clients.openai.models.retrieve("talkers")


def test_errors_are_the_sdks_own(clients: Clients) -> None:
    with pytest.raises(openai.NotFoundError, match="talker") as caught:
        clients.openai.chat.completions.create(model="talcer", messages=MESSAGES)
    assert (caught.value.code, caught.value.type) == ("model_not_found", "invalid_request_error")
    with pytest.raises(anthropic.NotFoundError, match="talker"):
        clients.anthropic.messages.create(model="talcer", messages=MESSAGES, max_tokens=4)


def test_a_failure_after_the_head_is_the_sdks_own_error(clients: Clients) -> None:
    with pytest.raises(openai.APIError, match="no such file"):
        list(clients.openai.chat.completions.create(model="broken", messages=MESSAGES, stream=True))
    with (
        pytest.raises(anthropic.APIStatusError, match="no such file"),
        clients.anthropic.messages.stream(
            model="broken too", messages=MESSAGES, max_tokens=4
        ) as stream,
    ):
        list(stream)


def test_a_message(clients: Clients) -> None:
    said = same_of_anthropic(
        clients,
        lambda c: c.messages.create(model=MODEL, messages=MESSAGES, max_tokens=8, extra_body=SAME),
    )

    assert MODEL in said.content[0].text


def test_a_message_as_a_stream(clients: Clients) -> None:
    def ask(client: anthropic.Anthropic) -> Any:
        with client.messages.stream(
            model=MODEL, messages=MESSAGES, max_tokens=8, extra_body=SAME
        ) as stream:
            events: list[Any] = list(stream)
            return [*events, stream.get_final_message()]

    said = same_of_anthropic(clients, ask)

    assert MODEL in said[-1].content[0].text
    assert said[-1].usage.output_tokens > 0


def test_a_message_calls_a_tool(clients: Clients) -> None:
    said = clients.anthropic.messages.create(  # llama-server takes no seed here, so each call is another
        model=CALLER,
        messages=MESSAGES,
        max_tokens=1000,
        tools=[{"name": "look", "description": "looks", "input_schema": SCHEMA}],
        tool_choice={"type": "any"},
    )

    assert said.stop_reason == "tool_use"
    assert any(part.type == "tool_use" and part.name == "look" for part in said.content)


@pytest.mark.parametrize("flags", [[], ["--no-stream"]], ids=["streaming", "whole"])
def test_the_llm_command_says_the_same(clients: Clients, flags: list[str], tmp_path: Path) -> None:
    def ask(url: str) -> str:
        models = [{"model_id": "m", "model_name": MODEL, "api_base": url, "api_key_name": "k"}]
        (tmp_path / "extra-openai-models.yaml").write_text(json.dumps(models))
        asked = ["llm", "-m", "m", "--key", "none", "--no-log", *flags, "hi"]
        options = {**SAME, "max_tokens": 8}
        asked += [word for k, v in options.items() for word in ("-o", k, str(v))]
        ran = subprocess.run(
            [sys.executable, "-m", *asked],
            env={**os.environ, "LLM_USER_PATH": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    told = ask(clients.box.url("/v1"))
    assert MODEL in told
    assert told == ask(f"{clients.direct(MODEL)}/v1")


def test_tokens_are_counted_the_same(clients: Clients) -> None:
    said = same_of_anthropic(
        clients, lambda c: c.messages.count_tokens(model=MODEL, messages=MESSAGES)
    )

    assert said.input_tokens > 0
