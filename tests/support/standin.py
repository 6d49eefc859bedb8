"""Stands in for the scheduler on its real socket, for tests of those who ask it."""

import select
import threading
from collections.abc import Callable, Mapping
from typing import Self

from qmsup.errors import PeerError
from qmsup.transport.router import RouterSocket
from qmsup.wire import codec
from qmsup.wire.controlling import VERSION, Question, Reply, Trouble

Answer = Mapping[str, object] | Trouble | Reply | None
"""A body, a refusal, a whole reply, or silence."""

_LOOK = 0.02  # seconds between looks whether it is to end


class StandInScheduler:
    """Answers control questions as told, in a thread of its own, from `with` to its end.

    Attributes:
        asked: every question but pings, repeated ones too, in the order they came.
    """

    def __init__(self, endpoint: str) -> None:
        self.asked: list[Question] = []
        self._endpoint = endpoint
        self._answers: dict[str, Callable[[Question], Answer]] = {"ping": lambda _: {}}
        self._ending = threading.Event()
        self._bound = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stand-in scheduler")

    def says(self, verb: str, answer: Answer) -> None:
        """Answer this verb so from now on."""
        self._answers[verb] = lambda _: answer

    def answers(self, verb: str, answer: Callable[[Question], Answer]) -> None:
        """Answer this verb by what this makes of the question; called in the stand-in's thread."""
        self._answers[verb] = answer

    def __enter__(self) -> Self:
        self._thread.start()
        self.wait_until_bound()
        return self

    def wait_until_bound(self) -> None:
        """Wait until it can be reached."""
        assert self._bound.wait(10), "the stand-in could not bind"

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join(10)

    def _run(self) -> None:
        router = RouterSocket(self._endpoint)
        self._bound.set()
        while not self._ending.is_set():
            select.select([router.fileno()], [], [], _LOOK)
            while batch := router.receive():
                for client, frames in batch:
                    for frame in frames:
                        self._hear(router, client, frame)
        router.close()

    def _hear(self, router: RouterSocket, client: bytes, frame: bytes) -> None:
        assert codec.is_control(frame)
        try:
            question = codec.decode_question(frame)
        except PeerError as e:
            router.send(client, codec.encode_reply(codec.refuse_unreadable(frame, e)))
            return
        if question.verb != "ping":
            self.asked.append(question)
        answer: Answer = Trouble(code="bad_request", message=f"unknown verb {question.verb!r}")
        if (chosen := self._answers.get(question.verb)) is not None:
            answer = chosen(question)
        if answer is not None:
            router.send(client, codec.encode_reply(_reply(question, answer)))


def _reply(question: Question, answer: Mapping[str, object] | Trouble | Reply) -> Reply:
    if isinstance(answer, Reply):
        return answer
    if isinstance(answer, Trouble):
        return Reply(v=VERSION, id=question.id, ok=False, error=answer)
    return Reply(v=VERSION, id=question.id, ok=True, body=answer)
