"""Refuses a prompt that cannot fit a slot's context before it takes the slot.

One such request can fail every other generation of a server whose slots share their memory. Whoever reads the body
lists the prompt's parts by size alone, so no prompt text has to travel for this.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from qmsup.errors import Code, Refusal
from qmsup.ids import HostName, ModelId

_BYTES_PER_TOKEN = 4
"""About right for English, too many for most else: prompts in other scripts and code have more tokens than we guess.
That is the side to err on, for the server counts exactly and refuses what slips through."""


_DOUBTFUL_BELOW = 2
"""Times the context: hardly a text has fewer tokens than one for eight bytes, so what is beyond is refused unasked."""


class PartKind(StrEnum):
    """What a part of a prompt is."""

    TEXT = "text"
    IMAGE = "image"
    """Base64 of any size, or only an address: its bytes say nothing of the tokens it becomes."""
    OTHER = "other"


class Part(NamedTuple):
    """A piece of a prompt: a message's text, one entry of its content list.

    Attributes:
        size: in bytes of UTF-8.
    """

    kind: PartKind
    size: int


def estimate(parts: Iterable[Part]) -> int:
    """About how many tokens a prompt has, by the bytes of its text alone."""
    return sum(part.size for part in parts if part.kind is PartKind.TEXT) // _BYTES_PER_TOKEN


def is_doubtful(estimated: int, context: int) -> bool:
    """Whether a prompt that is too long by its estimate may fit all the same, so that its host had better count it."""
    return context <= estimated < _DOUBTFUL_BELOW * context


def verdict(
    host: HostName,
    model: ModelId,
    *,
    estimated: int,
    counted: int | None = None,
    context: int | None,
) -> Refusal | None:
    """Refuse a prompt that cannot fit.

    Args:
        host: where it would go.
        model: what for.
        estimated: the prompt's tokens as `estimate` has them.
        counted: the same as the host's `/tokenize` counted them; it overrules the estimate. None = not asked.
        context: tokens that one slot holds (`n_ctx` of the host's `/props`); None = not known, everything passes.

    Returns:
        None when it may go on. A prompt that fills the slot to the last token is refused too: there is no room for
        an answer, and llama-server says the same.
    """
    tokens = estimated if counted is None else counted
    if context is None or tokens < context:
        return None
    size = f"about {tokens}" if counted is None else f"{tokens}"
    message = (
        f"the prompt has {size} tokens, and a slot of {model} on host {host} holds {context} with the answer: "
        "shorten it, or give the model a larger context"
    )
    return Refusal(code=Code.CONTEXT_LENGTH_EXCEEDED, message=message)
