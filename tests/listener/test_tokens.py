from pathlib import Path

import pytest

from qmsup.listener.outcome import Dialect, Reading
from qmsup.listener.tokens import figures_in, tokens_of

TRANSCRIPTS = Path(__file__).with_name("transcripts")
DIALECTS = {
    "chat": Dialect.CHAT,
    "messages": Dialect.MESSAGES,
    "responses": Dialect.RESPONSES,
    "completion": Dialect.NONE,
    "completions": Dialect.NONE,
}
TOLD = {
    "chat-call.sse": (155, 39),
    "chat-text.sse": (22, 3),
    "chat-call.json": (155, 34),
    "chat-text.json": (22, 3),
    "completion-text.sse": (3, 3),
    "completion-text.json": (3, 3),
    "completions-text.sse": (3, 3),
    "completions-text.json": (3, 3),
    "messages-text.sse": (22, 2),
    "messages-text.json": (22, 3),
    "messages-call.sse": (155, 36),
    "messages-call.json": (155, 35),
    "responses-call.sse": (155, 37),
    "responses-text.json": (22, 3),
}


def read(name: str, step: int) -> tuple[int | None, int | None]:
    body = (TRANSCRIPTS / name).read_bytes()
    reading = Reading(DIALECTS[name.partition("-")[0]], is_event_stream=name.endswith(".sse"))
    for at in range(0, len(body), step):
        piece = body[at : at + step]
        reading.pieces.append(piece)
        reading.added(len(piece))
    reading.outcome()
    return reading.tokens()


@pytest.mark.parametrize("name", sorted(TOLD))
@pytest.mark.parametrize("step", [211, 700, 1500, 65536])
def test_a_real_answer_tells_its_tokens_however_it_is_cut(name: str, step: int) -> None:
    assert read(name, step) == TOLD[name]


def test_an_answer_that_tells_its_tokens_before_its_data_is_read() -> None:
    said = b'{"object":"list","usage":{"prompt_tokens":6,"total_tokens":6},"data":[%b]}'
    reading = Reading(Dialect.NONE, is_event_stream=False)
    for piece in (said % (b"0.25," * 50_000), b"0.5]}"):
        reading.pieces.append(piece)
        reading.added(len(piece))

    assert reading.tokens() == (6, None)


def test_an_answer_without_figures_tells_none() -> None:
    assert tokens_of(figures_in(b'{"choices": [{"text": "usage"}]}')) == (None, None)


def test_what_a_model_writes_is_no_figure() -> None:
    said = rb'{"text": "\"usage\": {\"prompt_tokens\": 7}"}'

    assert tokens_of(figures_in(said)) == (None, None)


def test_the_last_figures_of_a_stream_that_tells_them_at_each_step_count() -> None:
    steps = [
        b'data: {"usage": {"prompt_tokens": 5, "completion_tokens": %d}}\n\n' % n for n in range(9)
    ]

    assert tokens_of(figures_in(b"".join(steps))) == (5, 8)


def test_prompt_and_cache_of_timings_are_added() -> None:
    said = b'"timings":{"cache_n":20,"prompt_n":2,"prompt_ms":0.5,"predicted_n":3}'

    assert tokens_of(figures_in(said)) == (22, 3)


def test_usage_counts_before_timings() -> None:
    said = b'"timings":{"prompt_n":1,"predicted_n":9},"usage":{"prompt_tokens":4,"completion_tokens":3}'

    assert tokens_of(figures_in(said)) == (4, 3)
