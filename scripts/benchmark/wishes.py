"""What a measured request asks of our own child: written into the body's `user` field, which every proxy passes on."""

import json
import re
from dataclasses import dataclass

_WISH = re.compile(rb"wish events=(\d+) hz=(\d+) gate=(\d) tag=(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How the child shall answer.

    Attributes:
        events: Events of the stream; 0 = no stream but a small JSON answer.
        hz: Events a second; 0 = as fast as they are taken.
        gate: After the first event (or before a JSON answer) nothing more comes until the child is asked
            for `/release`.
        tag: Named in the child's notes when the client goes away early.
    """

    events: int = 0
    hz: int = 0
    gate: bool = False
    tag: int = 0


ENDLESS = 10**9
"""As many events as no measurement waits for."""


def body(model: str, wish: Wish | None = None) -> bytes:
    """A chat request of the size clients send, around 250 bytes."""
    wish = wish or Wish()
    return json.dumps(
        {
            "model": model,
            "messages": [
                {"role": "user", "content": "Tell me in one sentence what a supervisor does."}
            ],
            "stream": wish.events > 0,
            "max_tokens": 64,
            "user": f"wish events={wish.events} hz={wish.hz} gate={int(wish.gate)} tag={wish.tag}",
        }
    ).encode()


def read(body: bytes) -> Wish:
    """The wish in a request's body; the plain one when there is none."""
    found = _WISH.search(body)
    if not found:
        return Wish()
    events, hz, gate, tag = (int(number) for number in found.groups())
    return Wish(events=events, hz=hz, gate=bool(gate), tag=tag)
