"""How many tokens an answer says it took and gave, read from its last bytes, and its first where those tell it.

Servers tell that at the end, nearly all: OpenAI's and Anthropic's `usage`, llama-server's `timings`. The figures are
looked for as they stand, which is exact without parsing: a quote that a model wrote has a backslash before it.
"""

import re

TAIL = 1024
"""Bytes: the figures and what ends a stream after them, twice over."""

_PLACES = (b'"usage"', b'"timings"')
_FIGURE = re.compile(
    rb'"((?:prompt|completion|input|output|cache_read_input|cache_creation_input)_tokens'
    rb'|prompt_n|cache_n|predicted_n)"[ \t]{0,8}:[ \t]{0,8}(\d{1,12})'
)

Figures = dict[bytes, int]
"""By the server's name for each."""


def figures_in(text: bytes) -> Figures:
    """The last of each figure in a part of an answer; none = it tells none."""
    begin = min((at for at in map(text.rfind, _PLACES) if at >= 0), default=-1)
    if begin < 0:
        return {}
    return {name: int(digits) for name, digits in _FIGURE.findall(text, begin)}


def tokens_of(figures: Figures) -> tuple[int | None, int | None]:
    """Tokens of the prompt, those that were cached included, and of the answer; None = not told."""
    return _prompt(figures), _first(figures, b"completion_tokens", b"output_tokens", b"predicted_n")


def _prompt(figures: Figures) -> int | None:
    if (told := _first(figures, b"prompt_tokens")) is not None:
        return told
    if (told := _first(figures, b"input_tokens")) is not None:
        # Anthropic counts apart what it had in its cache; OpenAI's count under this name has it in.
        return told + sum(
            figures.get(name, 0)
            for name in (b"cache_read_input_tokens", b"cache_creation_input_tokens")
        )
    if (told := _first(figures, b"prompt_n")) is not None:
        return told + figures.get(b"cache_n", 0)
    return None


def _first(figures: Figures, *names: bytes) -> int | None:
    return next((figures[name] for name in names if name in figures), None)
