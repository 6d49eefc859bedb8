"""A client of the demo: the requests any OpenAI client would send."""

import json
import shlex
from collections.abc import Iterator

import requests

from scripts.demonstration.telling import DemoError, say, trickle

_WITHIN = 60.0  # seconds, between two reads


def body(model: str) -> dict[str, object]:
    """A chat request that streams a short answer."""
    return {
        "model": model,
        "stream": True,
        "max_tokens": 12,
        "messages": [{"role": "user", "content": "Who are you?"}],
    }


def as_curl(url: str, model: str) -> str:
    """The same request for a shell."""
    told = shlex.quote(json.dumps(body(model)))
    return f"curl -N {url}/v1/chat/completions -H 'Content-Type: application/json' -d {told}"


def ask(url: str, model: str) -> None:
    """Ask, and print the answer as it comes.

    Raises:
        DemoError: it was refused, broke off, or another model answered.
    """
    address = f"{url}/v1/chat/completions"
    try:
        with requests.post(address, json=body(model), stream=True, timeout=_WITHIN) as answer:
            if not answer.ok:
                raise DemoError(f"{address} said {answer.status_code}: {answer.text}")
            _show_head(answer)
            heard: list[str] = []
            trickle(_noting(_pieces(answer), heard))
    except requests.RequestException as error:
        raise DemoError(f"{address} broke off: {error}") from error
    if not heard or any(word and not word.startswith(model) for word in "".join(heard).split()):
        raise DemoError(f"asked {model}, and somebody else answered: {''.join(heard)!r}")


def _show_head(answer: requests.Response) -> None:
    had_to_load = answer.headers.get("X-QM-Model-Loaded") == "1"
    waited = answer.headers.get("X-QM-Wait-Ms", "?")
    story = "had to be loaded for this" if had_to_load else "was ready"
    say(f"{answer.headers.get('X-QM-Model')} {story}, granted after {waited} ms; it says:")


def _pieces(answer: requests.Response) -> Iterator[str]:
    """The text in each event of the stream, up to `[DONE]`."""
    for line in answer.iter_lines(chunk_size=None):
        if not line.startswith(b"data: "):
            continue  # between events, or a comment: how a waiting client learns its place
        if line == b"data: [DONE]":
            return
        event = json.loads(line.removeprefix(b"data: "))
        if "error" in event:
            raise DemoError(f"the stream ended with an error: {event['error']}")
        for choice in event["choices"]:
            if text := choice["delta"].get("content"):
                yield text
    raise DemoError("the stream ended without [DONE]")


def _noting(pieces: Iterator[str], heard: list[str]) -> Iterator[str]:
    for piece in pieces:
        heard.append(piece)
        yield piece
