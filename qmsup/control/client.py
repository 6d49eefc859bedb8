"""Asks the scheduler over its socket, as any program in any language could (wire/PROTOCOL.md)."""

import os
import secrets
import time
from pathlib import Path
from typing import Any, Self

from qmsup.control.door import Door, here
from qmsup.errors import AskTimedOutError, PeerError, RefusedError
from qmsup.transport.dealer import DealerSocket
from qmsup.units import Seconds
from qmsup.wire import codec
from qmsup.wire.controlling import VERSION, Question, Reply

_REPEAT = Seconds(0.5)
"""Between repetitions of a question that has no answer. The scheduler knows it by its id."""

_GLANCE = Seconds(0.1)
"""Between looks whether a key was refused."""

_SILENCE = Seconds(10.0)
"""A scheduler that leaves even `ping` unanswered this long is not there. A restart takes less."""


class Client:
    """A connection to the scheduler. For one thread; close it, or use it in a `with`."""

    def __init__(
        self,
        endpoint: str | None = None,
        timeout: Seconds = Seconds(5.0),
        *,
        own_key: Path | None = None,
        server_key: Path | None = None,
    ) -> None:
        """Connect.

        Args:
            endpoint: of the scheduler's socket; None = the one of this environment. `tcp://…` needs both keys.
            timeout: for each answer.
            own_key: file of this client's secret key (`qmsup keys`).
            server_key: file of the scheduler's public key.

        Raises:
            SchedulerUnavailableError: nobody listens there.
            ConfigError: the address is none, or a key is not named or cannot be read.
        """
        self._door = (
            here()
            if endpoint is None
            else Door(endpoint=endpoint, own_key=own_key, server_key=server_key)
        )
        self._door.check()
        secure = self._door.secure()
        self._timeout = timeout
        self._name = f"ctl-{os.getpid()}-{secrets.token_hex(4)}"
        self._asked = 0
        self._door.knock(timeout)
        self._socket = DealerSocket(self._door.endpoint, self._name.encode(), secure=secure)

    @classmethod
    def through(cls, door: Door, timeout: Seconds) -> Self:
        """Connect by a way that is described elsewhere; raises as the constructor does."""
        return cls(door.endpoint, timeout, own_key=door.own_key, server_key=door.server_key)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def ask(self, verb: str, **args: object) -> Any:
        """Ask, and wait for the answer; a question that gets none is repeated under the same id.

        Returns:
            The answer's body, as JSON gave it (PROTOCOL.md: verbs).

        Raises:
            RefusedError: the scheduler said no.
            SchedulerUnavailableError: no sign of life, or one side does not know the other's key.
            AskTimedOutError: it lives, but has not answered in time.
            PeerError: it answered what this version cannot read.
        """
        self._asked += 1
        question = Question(v=VERSION, id=f"{self._name}-{self._asked}", verb=verb, args=args)
        reply = self._answer_to(question)
        if reply.error is not None:
            raise RefusedError(reply.error.code, reply.error.message)
        if not reply.ok:
            raise PeerError(f"the scheduler refused {verb!r} without a reason")
        return reply.body

    def _answer_to(self, question: Question) -> Reply:
        # A long question is silent until it is done, so a ping travels with it: it tells a scheduler that
        # works on the answer from one that is gone.
        ping = Question(v=VERSION, id=f"{question.id}-ping", verb="ping")
        frames = [codec.encode_question(question), codec.encode_question(ping)]
        began = heard = time.monotonic()
        while (now := time.monotonic()) < began + self._timeout:
            if now > heard + _SILENCE:
                break
            self._socket.send(frames)
            repeat_at = min(now + _REPEAT, began + self._timeout)
            while (left := repeat_at - time.monotonic()) > 0:
                if self._socket.wait(Seconds(min(left, _GLANCE))):
                    heard = time.monotonic()
                if (stranger := self._socket.stranger()) is not None:
                    raise self._door.unknown(stranger)
                if (reply := self._reply_among(self._socket.receive(), question.id)) is not None:
                    return reply
        if began < heard and time.monotonic() <= heard + _SILENCE:
            raise AskTimedOutError(
                f"no answer to {question.verb!r} within {self._timeout:g} s, though the scheduler lives:"
                " it may still do it; look with `qmsup ps` and `qmsup queue`, or give more time with --timeout"
            )
        raise self._door.unavailable("does not answer; if it stays so, restart it")

    def _reply_among(self, frames: list[bytes], question_id: str) -> Reply | None:
        for frame in frames:
            reply = codec.decode_reply(frame)
            if reply.id == question_id:
                return reply
        return None
