"""What would hold up a loop, done by a thread each, and its result brought back to the loop."""

import os
import select
import threading
from collections.abc import Callable
from typing import TypeVar

from qmsup.listener.relay.loop import Loop

_MOST = 16

T = TypeVar("T")


class Errands:
    """For the thread of a loop. There are few at a time: a look-up of a name, a count of a prompt's tokens."""

    def __init__(self, loop: Loop) -> None:
        """Start no thread yet."""
        self._loop = loop
        self._done: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._nudge_fd = -1
        self._running = 0

    @property
    def is_busy(self) -> bool:
        """So many are under way that what can be done without is better left: each is a thread."""
        return self._running >= _MOST

    def run(self, name: str, do: Callable[[], T], take: Callable[[T], None]) -> None:
        """Have something done, and its result taken in a later turn of the loop.

        Args:
            name: of the thread.
            do: in that thread; must not raise.
            take: gets what it returned; is not called once the errands are closed.
        """
        if self._nudge_fd < 0:
            self._nudge_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._loop.watch(self._nudge_fd, select.EPOLLIN, self._on_done)

        self._running += 1

        def work() -> None:
            result = do()
            with self._lock:
                self._done.append(lambda: take(result))
                if self._nudge_fd >= 0:
                    os.eventfd_write(self._nudge_fd, 1)

        # A daemon: a server of names may take half a minute, and nobody waits for that at the end.
        threading.Thread(target=work, name=name, daemon=True).start()

    def close(self) -> None:
        """Nobody waits any more; what is under way ends for itself."""
        with self._lock:
            if self._nudge_fd >= 0:
                self._loop.release(self._nudge_fd)
                os.close(self._nudge_fd)
            self._nudge_fd = -1

    def _on_done(self, _event: int) -> None:
        os.eventfd_read(self._nudge_fd)
        with self._lock:
            done, self._done = self._done, []
        for tell in done:
            self._running -= 1
            tell()
