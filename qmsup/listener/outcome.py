"""How an answer of a child ended, in the words that the scheduler gates holds by.

What decides is read in passing, in the payload of the body: the bytes that say it in JSON, such as
`"finish_reason":"tool_calls"`, are looked for as they stand. That is exact without parsing, for they hold bare
quotes: what a model wrote lies inside JSON strings, where each quote has a backslash before it. An error event
starts a line, and a JSON string holds no line end either.

So nothing is kept but the last few bytes, and it does not matter where in an answer the words stand (llama-server
puts `finish_reason` first in a plain answer, and before the timings in a stream), how long the answer is, or how it
was cut into reads and chunks. A tail that is kept and parsed at the end fails on all three, and needs kilobytes for
every stream that is held. (How many tokens there were is worth no more than that: one kilobyte is kept for it, see
tokens.py.)

One thing can deceive it: in a plain answer of `/v1/messages` the arguments of a call are bare JSON that the model
chose. But where there is a call, it is nearly always what the answer ended with.
"""

import re
from dataclasses import dataclass
from enum import Enum, StrEnum

from qmsup.listener.tokens import TAIL, Figures, figures_in, tokens_of

_SUCCESS = range(200, 300)
_OVERLAP = 63
"""One byte less than the longest match: what of it may have come before."""
_PIECES_AT_ONCE = 4
_LARGE = 2048
"""A look costs more to begin than to do, so a few events wait for one that sees them all: a kilobyte, as a rule."""


class Outcome(StrEnum):
    """How the work under a lease ended, as `Done` tells it."""

    TOOL_CALLS = "tool_calls"
    FINISHED = "finished"
    FAILED = "failed"
    ABANDONED = "abandoned"
    UNKNOWN = "unknown"


class Dialect(Enum):
    """In which API's words an endpoint tells of tool calls."""

    NONE = "none"
    """It makes none."""
    CHAT = "chat"
    MESSAGES = "messages"
    RESPONSES = "responses"


@dataclass(frozen=True, slots=True)
class _Words:
    """What says that there was a call.

    Attributes:
        sign: a part of every match, which hardly any other event has: quicker to look for than the pattern.
        call: a name, a value, and the spaces that some servers put between them; at most 64 bytes.
    """

    sign: bytes
    call: re.Pattern[bytes]


def _words(sign: bytes, name: bytes, values: bytes) -> _Words:
    return _Words(sign, re.compile(rb'"%b"[ \t]{0,8}:[ \t]{0,8}"(?:%b)"' % (name, values)))


_WORDS = {
    Dialect.NONE: None,
    Dialect.CHAT: _words(b"_call", b"finish_reason", b"tool_calls|function_call"),
    Dialect.MESSAGES: _words(b'"tool_use"', b"stop_reason", b"tool_use"),
    Dialect.RESPONSES: _words(b'_call"', b"type", b"function_call|custom_tool_call"),
}
# As OpenAI, Anthropic and llama-server write it; the latter puts data of another form under Anthropic's name.
_ERROR = re.compile(
    rb'\n(?:event: ?error[\r\n]|data: ?\{ ?"(?:error" ?: ?[{"]|type" ?: ?"(?:error|response\.failed)"))'
)


class Reading:
    """The words of one successful answer, picked out while it passes.

    Attributes:
        pieces: what came and was not looked through yet: the body without the framing of its transfer.
    """

    __slots__ = (
        "_before",
        "_begins_with_figures",
        "_errors",
        "_figures",
        "_has_call",
        "_has_error",
        "_tail",
        "_words",
        "pieces",
    )

    def __init__(self, dialect: Dialect, *, is_event_stream: bool) -> None:
        self._words = _WORDS[dialect]
        # Anthropic's streams begin with those of the prompt, llama-server's embeddings with all there are.
        self._begins_with_figures = dialect is (
            Dialect.MESSAGES if is_event_stream else Dialect.NONE
        )
        self._figures: Figures = {}
        self._tail = b""
        self._errors = _ERROR.search if is_event_stream else None
        self.pieces: list[bytes] = []
        self._before = b"\n"  # what starts the body starts a line
        self._has_call = False
        self._has_error = False

    def added(self, size: int) -> None:
        """Something was added to `pieces`, in a read of this many bytes."""
        if len(self.pieces) >= _PIECES_AT_ONCE or size > _LARGE:
            self._look()

    def _look(self) -> None:
        pieces = self.pieces
        fresh = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        size = len(fresh)
        self._tail = fresh[-TAIL:] if size >= TAIL else (self._tail + fresh)[-TAIL:]
        if self._begins_with_figures:
            self._begins_with_figures = False
            self._figures = figures_in(fresh[:TAIL].partition(b"\n\n")[0])
        if self._words is None and self._errors is None:
            return
        window = self._before + fresh
        self._before = window[-_OVERLAP:]
        words = self._words
        if words is not None and words.sign in window and words.call.search(window):
            self._has_call = True
        if self._errors is not None and self._errors(window):
            self._has_error = True

    def outcome(self) -> Outcome:
        """What the whole answer amounts to; unknown, if it ends as no answer of its kind does."""
        self._look()
        if self._has_error:
            return Outcome.FAILED
        if self._has_call:
            return Outcome.TOOL_CALLS
        if self._words is None or self._before.rstrip().endswith((b"}", b"[DONE]")):
            return Outcome.FINISHED
        return Outcome.UNKNOWN

    def tokens(self) -> tuple[int | None, int | None]:
        """Tokens of the prompt and of the answer, as far as what passed told them."""
        if self.pieces:
            self._look()
        return tokens_of(self._figures | figures_in(self._tail))


def reading_of(
    dialect: Dialect,
    *,
    status: int,
    is_event_stream: bool,
    is_encoded: bool,
    is_json: bool = False,
) -> Reading | Outcome:
    """What to read an answer with, or its outcome where its body has no say in it.

    Args:
        dialect: of the endpoint that was asked.
        status: of the answer.
        is_event_stream: it may end in an error event, whatever its status said.
        is_encoded: the body is compressed.
        is_json: it may tell how many tokens it took, whatever the dialect.
    """
    if status not in _SUCCESS:
        return Outcome.FAILED
    if is_encoded:
        return Outcome.FINISHED if dialect is Dialect.NONE else Outcome.UNKNOWN
    if dialect is Dialect.NONE and not is_event_stream and not is_json:
        return Outcome.FINISHED
    return Reading(dialect, is_event_stream=is_event_stream)
