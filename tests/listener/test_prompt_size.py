"""About how many tokens a prompt has: a quarter of the bytes of its texts."""

import json

import pytest

from qmsup.listener.prompt_size import text_of_prompt, tokens_in_prompt

_TEXT = "x" * 40
_IMAGE = {"type": "image_url", "image_url": {"url": "data:" + "A" * 4000}}
_PARTS = [{"type": "text", "text": _TEXT}, _IMAGE, {"type": "input_text", "text": _TEXT}]

SIZES: dict[str, tuple[object, int]] = {
    "messages": ({"messages": [{"content": _TEXT}, {"content": _TEXT}]}, 20),
    "parts, and an image": ({"messages": [{"content": _PARTS}]}, 20),
    "no content": ({"messages": [{"content": None}, {"tool_calls": []}]}, 0),
    "a system prompt": ({"system": _TEXT, "messages": [{"content": _TEXT}]}, 20),
    "a system prompt in parts": ({"system": _PARTS}, 20),
    "a prompt": ({"prompt": _TEXT}, 10),
    "prompts": ({"prompt": [_TEXT, _TEXT]}, 20),
    "tokens already": ({"prompt": [1, 2, 3]}, 0),
    "responses": ({"instructions": _TEXT, "input": _TEXT}, 20),
    "responses in turns": ({"input": [{"role": "user", "content": _PARTS}]}, 20),
    "bytes, not letters, nor escapes": ({"prompt": "ü\n" * 8}, 6),
    "an image with text": ({"messages": [{"content": [{"type": "image", "text": _TEXT}]}]}, 0),
    "another shape": ({"messages": {"a": 1}, "system": 5, "input": [[1]]}, 0),
    "nothing": ({}, 0),
}


@pytest.mark.parametrize("case", SIZES)
def test_the_size_of_a_prompt(case: str) -> None:
    body, tokens = SIZES[case]

    assert tokens_in_prompt(json.dumps(body).encode()) == tokens


def test_what_is_no_json_object_has_none() -> None:
    assert tokens_in_prompt(b"[1]") == tokens_in_prompt(b"{") == 0


def test_its_text_is_that_of_all_its_parts_but_images() -> None:
    body = {"system": "be brief", "messages": [{"content": _PARTS}, {"content": "bye"}]}

    assert text_of_prompt(json.dumps(body).encode()) == f"be brief\n{_TEXT}\n{_TEXT}\nbye"
    assert text_of_prompt(b"[1]") == ""
