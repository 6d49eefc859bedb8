"""A scheduler that does what a test says: a real ROUTER socket, and no scheduling behind it."""

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from qmsup.ids import Epoch, Incarnation
from qmsup.transport.router import RouterSocket
from qmsup.wire import codec, controlling, listening
from qmsup.wire.listening import Ask, FromScheduler, FromWorker, Granted, Hello, Welcome

PATIENCE = 10.0

Message = FromWorker | controlling.Question
M = TypeVar("M", bound=Message)
OnAsk = Callable[[Ask], list[FromScheduler]]


def grant(ask: Ask, upstream: str, *, was_ready: bool = True, waited_ms: int = 0) -> Granted:
    """A lease for what was asked."""
    return Granted(
        request=ask.request,
        epoch=Epoch(1),
        model=ask.model,
        incarnation=Incarnation(1),
        upstream=upstream,
        was_ready=was_ready,
        waited_ms=waited_ms,
    )


class GrantingScheduler:
    """Welcomes workers, answers asks by `on_ask`, and remembers all that it heard."""

    def __init__(self, endpoint: str, *, epoch: int = 1) -> None:
        self.on_ask: OnAsk = lambda _ask: []
        self.on_question: Callable[[controlling.Question], controlling.Reply | None] = lambda _q: (
            None
        )
        self.welcomes = True
        self.heard: list[Message] = []
        self._epoch = Epoch(epoch)
        self._endpoint = endpoint
        self._workers: list[bytes] = []
        self._changed = threading.Condition()
        self._to_do: deque[FromScheduler] = deque()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK)
        self._stop = False
        self._bound = threading.Event()
        self._thread = threading.Thread(target=self._run, name="granting-scheduler")

    def start(self) -> None:
        self._thread.start()
        assert self._bound.wait(PATIENCE)

    def stop(self) -> None:
        self._stop = True
        os.eventfd_write(self._wake, 1)
        self._thread.join(PATIENCE)
        os.close(self._wake)

    def say(self, *messages: FromScheduler) -> None:
        """To every worker that was heard."""
        for message in messages:
            self._to_do.append(message)
        os.eventfd_write(self._wake, 1)

    def hears(
        self, kind: type[M], where: Callable[[M], bool] = lambda _m: True, *, count: int = 1
    ) -> M:
        """Wait for a message; with `count`, for so many of them, and return the last."""
        deadline = time.monotonic() + PATIENCE
        with self._changed:
            while True:
                found = [m for m in self.heard if isinstance(m, kind) and where(m)]
                if len(found) >= count:
                    return found[count - 1]
                left = deadline - time.monotonic()
                assert left > 0, f"no {kind.__name__} was heard, only {self.heard}"
                self._changed.wait(left)

    def kinds(self) -> list[str]:
        """What was heard, without beats and what travels with them."""
        beside = listening.Beat | listening.Activity
        with self._changed:
            return [type(m).__name__ for m in self.heard if not isinstance(m, beside)]

    def _run(self) -> None:
        router = RouterSocket(self._endpoint)
        self._bound.set()
        poll = select.poll()
        poll.register(router.fileno(), select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        while not self._stop:
            while received := router.receive():
                for sender, frames in received:
                    for frame in frames:
                        self._take(router, sender, frame)
            while self._to_do:
                message = self._to_do.popleft()
                for worker in self._workers:
                    router.send(worker, codec.encode(message))
            for fd, _ in poll.poll(50):
                if fd == self._wake:
                    os.eventfd_read(self._wake)
        router.close()

    def _take(self, router: RouterSocket, sender: bytes, frame: bytes) -> None:
        if sender not in self._workers:
            self._workers.append(sender)
        if codec.is_control(frame):
            question = codec.decode_question(frame)
            self._remember(question)
            if (reply := self.on_question(question)) is not None:
                router.send(sender, codec.encode_reply(reply))
            return
        message = codec.decode_from_worker(frame)
        if isinstance(message, Hello) and self.welcomes:
            welcome = Welcome(version=listening.VERSION, epoch=self._epoch)
            router.send(sender, codec.encode(welcome))
        if isinstance(message, Ask):
            for answer in self.on_ask(message):
                router.send(sender, codec.encode(answer))
        self._remember(message)

    def _remember(self, message: Message) -> None:
        with self._changed:
            self.heard.append(message)
            self._changed.notify_all()


@contextmanager
def granting_scheduler(endpoint: str, *, epoch: int = 1) -> Iterator[GrantingScheduler]:
    """One that runs for as long as the block."""
    scheduler = GrantingScheduler(endpoint, epoch=epoch)
    scheduler.start()
    try:
        yield scheduler
    finally:
        scheduler.stop()
