import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmsup.core.scheduling import events
from qmsup.listener.outcome import Dialect, Outcome, Reading, reading_of
from qmsup.listener.routes import RELAYED

TRANSCRIPTS = Path(__file__).with_name("transcripts")
DIALECTS = {
    "chat": Dialect.CHAT,
    "messages": Dialect.MESSAGES,
    "responses": Dialect.RESPONSES,
    "completion": Dialect.NONE,
    "completions": Dialect.NONE,
}
OUTCOMES = {"call": Outcome.TOOL_CALLS, "text": Outcome.FINISHED, "error": Outcome.FAILED}
NAMES = sorted(path.name for path in TRANSCRIPTS.glob("*.[sj]s*"))
CALLING = [dialect for dialect in Dialect if dialect is not Dialect.NONE]


def read(*pieces: bytes, dialect: Dialect, stream: bool = True) -> Outcome:
    reading = Reading(dialect, is_event_stream=stream)
    for piece in pieces:
        reading.pieces.append(piece)
        reading.added(len(piece))
    return reading.outcome()


def read_transcript(name: str, cuts: list[int]) -> Outcome:
    body = (TRANSCRIPTS / name).read_bytes()
    places = sorted({0, len(body), *(cut % len(body) for cut in cuts)})
    pieces = [body[a:b] for a, b in itertools.pairwise(places)]
    return read(*pieces, dialect=DIALECTS[name.partition("-")[0]], stream=name.endswith(".sse"))


# ---- what a real server says


@pytest.mark.parametrize("name", NAMES)
def test_a_real_answer_is_read(name: str) -> None:
    what = name.partition("-")[2].partition(".")[0]

    assert read_transcript(name, []) == OUTCOMES[what]


@given(st.sampled_from(NAMES), st.lists(st.integers(0, 10_000), max_size=12))
def test_any_split_of_a_real_answer_gives_the_same(name: str, cuts: list[int]) -> None:
    assert read_transcript(name, cuts) == read_transcript(name, [])


@pytest.mark.parametrize("name", NAMES)
def test_a_real_answer_that_comes_byte_by_byte_gives_the_same(name: str) -> None:
    assert read_transcript(name, list(range(10_000))) == read_transcript(name, [])


# ---- what others say

STREAM_END = b"data: [DONE]\n\n"
ANSWERS = {
    "spaces after the colon": (
        Dialect.CHAT,
        b'data: {"choices": [{"finish_reason": "tool_calls", "delta": {}}]}\n\n' + STREAM_END,
        Outcome.TOOL_CALLS,
    ),
    "the old name of a call": (
        Dialect.CHAT,
        b'data: {"choices":[{"finish_reason":"function_call"}]}\n\n' + STREAM_END,
        Outcome.TOOL_CALLS,
    ),
    "one of two choices": (
        Dialect.CHAT,
        b'data: {"choices":[{"finish_reason":"tool_calls"}]}\n\n'
        b'data: {"choices":[{"finish_reason":"stop"}]}\n\n' + STREAM_END,
        Outcome.TOOL_CALLS,
    ),
    "much follows the reason": (
        Dialect.CHAT,
        b'data: {"choices":[{"finish_reason":"tool_calls"}]}\n\n'
        + b'data: {"choices":[],"usage":"%b"}\n\n' % (b"x" * 100_000)
        + STREAM_END,
        Outcome.TOOL_CALLS,
    ),
    "a call that was cut short by the limit": (
        Dialect.CHAT,
        b'data: {"choices":[{"finish_reason":null,"delta":{"tool_calls":[{"index":0}]}}]}\n\n'
        b'data: {"choices":[{"finish_reason":"length"}]}\n\n' + STREAM_END,
        Outcome.FINISHED,
    ),
    "another name that ends the same": (
        Dialect.CHAT,
        b'data: {"choices":[{"native_finish_reason":"tool_calls","finish_reason":"stop"}]}\n\n'
        + STREAM_END,
        Outcome.FINISHED,
    ),
    "the answer to a call, told back": (
        Dialect.RESPONSES,
        b'data: {"type":"response.completed","input":[{"type":"function_call_output"}]}\n\n',
        Outcome.FINISHED,
    ),
    "a call of a tool with input as text": (
        Dialect.RESPONSES,
        (
            b'data: {"type":"response.output_item.done","item":{"type":"custom_tool_call"}}\n\n'
            b'data: {"type":"response.completed"}\n\n'
        ),
        Outcome.TOOL_CALLS,
    ),
    "calls of another API": (
        Dialect.MESSAGES,
        b'data: {"choices":[{"finish_reason":"tool_calls"}]}\n\n',
        Outcome.FINISHED,
    ),
    "an error after a call": (
        Dialect.CHAT,
        b'data: {"choices":[{"finish_reason":"tool_calls"}]}\n\ndata: {"error":{"code":500}}\n\n',
        Outcome.FAILED,
    ),
    "an error from Python": (
        Dialect.CHAT,
        b'data: {"error": {"message": "x"}}\n\n' + STREAM_END,
        Outcome.FAILED,
    ),
    "an error that is a text": (Dialect.NONE, b'data: {"error":"x"}\n\n', Outcome.FAILED),
    "no error": (Dialect.NONE, b'data: {"error":null}\n\n', Outcome.FINISHED),
    "Anthropic's error": (
        Dialect.MESSAGES,
        b'event: error\r\ndata: {"type": "error", "error": {"type": "overloaded_error"}}\r\n\r\n',
        Outcome.FAILED,
    ),
    "OpenAI's error": (
        Dialect.RESPONSES,
        b'event: response.failed\ndata: {"type":"response.failed","response":{}}\n\n',
        Outcome.FAILED,
    ),
    "an error glued to a stream as text": (
        Dialect.CHAT,
        b'data: {"choices":[{"finish_reason":null}]}\n\nproxy error: Failed to read connection',
        Outcome.UNKNOWN,
    ),
    "nothing": (Dialect.CHAT, b"", Outcome.UNKNOWN),
    "nothing, where no calls are made": (Dialect.NONE, b"", Outcome.FINISHED),
}


@pytest.mark.parametrize("story", ANSWERS)
def test_an_answer_of_another_server_is_read(story: str) -> None:
    dialect, body, outcome = ANSWERS[story]

    assert read(body, dialect=dialect) == outcome
    assert read(*(bytes((byte,)) for byte in body[-2000:]), dialect=dialect) == read(
        body[-2000:], dialect=dialect
    )


def test_words_of_an_error_in_a_plain_answer_are_no_error_event() -> None:
    body = b'{\n"choices":\ndata: {"error":{}}\n}'

    assert read(body, dialect=Dialect.CHAT, stream=False) == Outcome.FINISHED


@pytest.mark.parametrize(
    ("dialect", "options", "outcome"),
    [
        (Dialect.CHAT, {"status": 500}, Outcome.FAILED),
        (Dialect.CHAT, {"status": 400, "is_encoded": True}, Outcome.FAILED),
        (Dialect.NONE, {"status": 302}, Outcome.FAILED),
        (Dialect.CHAT, {"is_encoded": True}, Outcome.UNKNOWN),
        (Dialect.NONE, {"is_encoded": True, "is_event_stream": True}, Outcome.FINISHED),
        (Dialect.NONE, {}, Outcome.FINISHED),
    ],
)
def test_some_outcomes_are_plain_before_the_body(
    dialect: Dialect, options: dict[str, int], outcome: Outcome
) -> None:
    told = {"status": 200, "is_event_stream": False, "is_encoded": False, **options}

    assert reading_of(dialect, **told) == outcome  # type: ignore[arg-type]  # one of them is no bool


def test_a_stream_of_any_endpoint_and_all_that_may_hold_calls_are_read() -> None:
    for dialect, stream in [(Dialect.NONE, True), (Dialect.CHAT, False), (Dialect.MESSAGES, True)]:
        reading = reading_of(dialect, status=200, is_event_stream=stream, is_encoded=False)

        assert isinstance(reading, Reading)


# ---- what a model writes

TRAPS = [
    '"finish_reason":"tool_calls"',
    '","finish_reason":"tool_calls","x":"',
    '"stop_reason": "tool_use"',
    '{"type":"function_call"}',
    '\\"type\\":\\"function_call\\"',
    '\n\ndata: {"error":{"code":500}}\n\n',
    "\nevent: error\n",
    "event: error",
    '"}\n\ndata: {"type":"error"}',
    "_call",
    "\\",
]
texts = st.lists(st.one_of(st.sampled_from(TRAPS), st.text(max_size=20)), max_size=8).map("".join)


@given(texts, st.sampled_from(CALLING), st.booleans(), st.booleans(), st.data())
def test_no_text_of_a_model_makes_a_call_or_an_error(
    text: str, dialect: Dialect, is_ascii: bool, is_stream: bool, data: st.DataObject
) -> None:
    said = {
        "type": "message",
        "error": None,
        "choices": [{"finish_reason": "stop", "message": {"content": text, "tool_calls": [text]}}],
        "stop_reason": "end_turn",
        "text": text,
    }
    dumped = json.dumps(said, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    body = b"data: %b\n\n" % dumped if is_stream else dumped
    cuts = data.draw(st.lists(st.integers(0, len(body)), max_size=6))
    places = sorted({0, len(body), *cuts})
    pieces = [body[a:b] for a, b in itertools.pairwise(places)]

    assert read(*pieces, dialect=dialect, stream=is_stream) == Outcome.FINISHED


@given(
    st.lists(st.sampled_from([b'"finish_reason"', b'"', b":", b" ", b"tool_calls", b"\n", b"}"])),
    st.lists(st.integers(0, 400), max_size=8),
)
def test_any_split_of_any_bytes_gives_the_same(parts: list[bytes], cuts: list[int]) -> None:
    body = b"".join(parts)
    places = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})

    pieces = [body[a:b] for a, b in itertools.pairwise(places)]

    assert read(*pieces, dialect=Dialect.CHAT) == read(body, dialect=Dialect.CHAT)


# ---- where it is used


def test_the_words_are_the_scheduler_s() -> None:
    assert {word.value for word in Outcome} == {word.value for word in events.Outcome}


def test_the_paths_that_may_hold_calls_are_known_in_every_spelling() -> None:
    found = {path: relayed.dialect for path, relayed in RELAYED.items()}

    assert found["/v1/chat/completions"] == found["/v/chat/completions/"] == Dialect.CHAT
    assert found["/chat/completions"] == Dialect.CHAT
    assert found["/v1/messages"] == Dialect.MESSAGES
    assert found["/v1/responses"] == Dialect.RESPONSES
    assert found["/v1/messages/count_tokens"] == found["/completion"] == Dialect.NONE
