"""Control questions of a worker's threads, answered through the loop that owns the socket."""

import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from qmsup.errors import Code, Refusal, RequestError, SchedulerUnavailableError
from qmsup.ids import AskId
from qmsup.units import Seconds
from qmsup.wire import codec, controlling
from qmsup.wire.controlling import Question, Reply

_REPEAT = Seconds(2.0)


@dataclass(slots=True)
class _Pending:
    frame: bytes
    repeat_at: float
    answered: threading.Event = field(default_factory=threading.Event)
    reply: Reply | None = None


class Questions:
    """Made by the loop's thread; everything but `ask` is for that thread alone."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._nudge = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._pending: dict[AskId, _Pending] = {}
        self._new: deque[_Pending] = deque()

    def __len__(self) -> int:
        return len(self._pending)

    def fileno(self) -> int:
        """Readable when something was asked."""
        return self._nudge

    def take_new(self) -> Iterator[bytes]:
        """What was asked since the last call, to be sent."""
        os.eventfd_read(self._nudge)
        while self._new:
            yield self._new.popleft().frame

    def take_late(self, now: float) -> Iterator[bytes]:
        """What was not answered for a while, to be sent again; the same id gets the same answer."""
        for pending in tuple(self._pending.values()):
            if now >= pending.repeat_at:
                pending.repeat_at = now + _REPEAT
                yield pending.frame

    def answer(self, reply: Reply) -> None:
        """Hand an answer to the thread that waits for it, if one still does."""
        pending = self._pending.get(AskId(reply.id))
        if pending is not None:
            pending.reply = reply
            pending.answered.set()

    def close(self) -> None:
        """Nobody is going to answer any more."""
        for pending in tuple(self._pending.values()):
            pending.answered.set()
        os.close(self._nudge)
        self._nudge = -1  # the number may be another's by the time that somebody asks

    def ask(self, verb: str, args: Mapping[str, object], timeout: Seconds) -> object:
        """Ask, and wait for the answer's body. Not for the loop's own thread, which would wait for itself.

        Raises:
            SchedulerUnavailableError: no answer within `timeout`.
            RequestError: the scheduler refused.
        """
        assert threading.get_ident() != self._thread, "the loop cannot wait for itself"
        ask = AskId(secrets.token_hex(8))
        question = Question(v=controlling.VERSION, id=ask, verb=verb, args=dict(args))
        pending = _Pending(codec.encode_question(question), time.monotonic() + _REPEAT)
        self._pending[ask] = pending
        self._new.append(pending)
        try:
            os.eventfd_write(self._nudge, 1)
            pending.answered.wait(timeout)
        except OSError as error:
            raise SchedulerUnavailableError("this worker is ending") from error
        finally:
            self._pending.pop(ask, None)
        reply = pending.reply
        if reply is None:
            raise SchedulerUnavailableError(
                f"the scheduler did not answer `{verb}` within {timeout:g} s: is `qmsup serve` running?"
            )
        if reply.error is not None:
            raise RequestError(Refusal(code=code_of(reply.error.code), message=reply.error.message))
        return reply.body


def code_of(text: str) -> Code:
    """A code of the scheduler's; one that this worker does not know (yet) is a refusal all the same."""
    try:
        return Code(text)
    except ValueError:
        return Code.MODEL_UNAVAILABLE
