"""An actor's inbox that waits for messages, file descriptors and one deadline at once.

An actor with such an inbox needs no helper thread: a socket, a child's pidfd and a timer each become a message,
handed over in the actor's own thread. Everything but `put` is for that thread alone.
"""

import contextlib
import os
import select
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pykka._envelope import Envelope
from typing_extensions import override

from qmsup.units import Seconds

_MAX_POLL_MS = 60_000
_LATE = Seconds(1.0)
"""Whoever looks at the clock so late was frozen, or the machine was."""
_HEARS_FOR = Seconds(3.0)
"""So long it is told nothing of the time then: a worker whose messages were lost has told us anew by that time."""


@dataclass(frozen=True, slots=True)
class TimeIsUp:
    """The deadline set with `wake_at` has come. It is disarmed."""


@dataclass(frozen=True, slots=True)
class _Watch:
    read: Callable[[], object | None]
    """Called when the descriptor is ready; what it returns, unless None, is the next message."""
    eager: bool
    """Also called before each wait: for a ZeroMQ socket, whose descriptor tells of changes only."""


class PollingInbox:
    """Stands in for pykka's queue. Return it from `_create_actor_inbox` and the actor's loop stays pykka's."""

    def __init__(self) -> None:
        self._messages: deque[Envelope[Any]] = deque()
        self._nudge = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._nudge, select.POLLIN)
        self._watches: dict[int, _Watch] = {}
        self._ready: deque[int] = deque()
        self._deadline: float | None = None
        self._looked_at = time.monotonic()
        self._hears_until = 0.0
        self._sources = deque(
            (self._from_others, self._from_clock, self._from_eager, self._from_ready)
        )

    def put(self, envelope: Envelope[Any], /) -> None:
        """Add a message, from any thread."""
        self._messages.append(envelope)
        with contextlib.suppress(OSError, ValueError):  # to an actor that has just ended
            os.eventfd_write(self._nudge, 1)

    def empty(self) -> bool:
        """Whether no message of another thread waits."""
        return not self._messages

    def get(self) -> Envelope[Any]:
        """The next message, whatever its source; waits for it. Sources take turns, so that none starves another.

        What a watch raises is raised by the message that it becomes: pykka looks after that, and not after this.
        """
        while True:
            for _ in range(len(self._sources)):
                source = self._sources[0]
                self._sources.rotate(-1)
                if (envelope := source()) is not None:
                    return envelope
            # A look at the descriptors takes the nudge with it, so a message put since we looked for one would
            # be slept over. Whatever is put after this line nudges the poll below.
            self._ready.extend(self._polled(0 if self._messages else self._timeout_ms()))

    def watch(
        self,
        fd: int,
        read: Callable[[], object | None],
        *,
        events: int = select.POLLIN,
        eager: bool = False,
    ) -> None:
        """Call `read` whenever the descriptor is ready; a second watch of one descriptor replaces the first.

        `read` may be called when there is nothing to read (the readiness seen may be that of an earlier owner of the
        descriptor's number): it must not block then.
        """
        self._watches[fd] = _Watch(read, eager)
        self._poll.register(fd, events)

    def forget(self, fd: int) -> None:
        """End a watch. Call it before the descriptor is closed; unknown ones are ignored."""
        if self._watches.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def wake_at(self, at: Seconds | None) -> None:
        """Deliver TimeIsUp at this point of the monotonic clock; forgets any earlier wish.

        Who was frozen hears first what was said meanwhile: its time was up for others, who kept to it.
        """
        self._deadline = at

    def close(self) -> None:
        """Give the descriptor back. What other threads have put can still be taken, so that pykka can refuse it."""
        self._sources = deque((self._from_others,))
        # First out of reach of `put`: the number may soon be another file's, and that must not be written to.
        nudge, self._nudge = self._nudge, -1
        os.close(nudge)

    def _from_others(self) -> Envelope[Any] | None:
        return self._messages.popleft() if self._messages else None

    def _from_clock(self) -> Envelope[Any] | None:
        now = time.monotonic()
        looked_at, self._looked_at = self._looked_at, now
        if self._deadline is None or now < self._deadline:
            return None
        if now - max(looked_at, self._deadline) > _LATE and not self._hears_until:
            self._hears_until = now + _HEARS_FOR
        if now < self._hears_until:
            return None
        self._deadline = None
        self._hears_until = 0.0
        return Envelope(TimeIsUp())

    def _from_eager(self) -> Envelope[Any] | None:
        for watch in [w for w in self._watches.values() if w.eager]:
            if (envelope := _read(watch)) is not None:
                return envelope
        return None

    def _from_ready(self) -> Envelope[Any] | None:
        if not self._ready:
            self._ready.extend(self._polled(0))
        while self._ready:
            watch = self._watches.get(self._ready.popleft())
            if watch is not None and (envelope := _read(watch)) is not None:
                return envelope
        return None

    def _polled(self, timeout_ms: int) -> list[int]:
        ready = [fd for fd, _ in self._poll.poll(timeout_ms)]
        if self._nudge in ready:
            os.eventfd_read(self._nudge)
        return ready

    def _timeout_ms(self) -> int:
        if self._deadline is None:
            return _MAX_POLL_MS
        due = max(self._deadline, self._hears_until)
        left_ms = (due - time.monotonic()) * 1000.0
        return min(_MAX_POLL_MS, max(0, int(left_ms) + 1))


class _Raising(Envelope[Any]):
    """Whoever asks for this message gets an exception instead."""

    __slots__ = ("_error",)

    def __init__(self, error: Exception) -> None:
        self._error = error
        self.reply_to = None

    @property
    @override
    def message(self) -> Any:
        raise self._error


def _read(watch: _Watch) -> Envelope[Any] | None:
    try:
        message = watch.read()
    except Exception as error:  # noqa: BLE001 - an actor that dies here would be dead without a word
        return _Raising(error)
    return None if message is None else Envelope(message)
