"""The listener worker processes that the scheduler knows: seen to die by pidfd, seen to be silent by their beats."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from qmsup.actors.inbox import PollingInbox
from qmsup.core.scheduling.events import Event, ListenerJoined, ListenerLost, ListenerSuspected
from qmsup.core.scheduling.views import Tally
from qmsup.ids import WorkerId
from qmsup.log import Log
from qmsup.units import Seconds

MOST = 512
"""Worker processes that are watched: a box has a few for each listener. Each takes a descriptor."""

_SILENCE = Seconds(5.0)
"""A worker beats every second. On a busy machine one may miss a few: it is only suspected, and loses nothing yet."""

_DOUBTS = 2
"""Beats in a row that contradict us before we believe them: a refusal may have crossed the first."""

_NOTHING = Tally(waiting=0, held=0)

_log = Log("workers")


@dataclass(slots=True)
class _Worker:
    pidfd: int
    heard_at: Seconds
    is_suspected: bool = False
    is_awaited: bool = False
    """It was there before the scheduler began, and has not greeted it."""
    doubts: int = 0


class Workers:
    """Watches processes through the scheduler actor's inbox, which gets a ListenerLost of each that ends.

    All calls come from that actor's thread.
    """

    def __init__(
        self, inbox: PollingInbox, tally: Callable[[WorkerId], Tally] = lambda _: _NOTHING
    ) -> None:
        """Know nobody yet.

        Args:
            inbox: of the actor.
            tally: tells what a worker has that its end would cost.
        """
        self._inbox = inbox
        self._tally = tally
        self._known: dict[WorkerId, _Worker] = {}

    def greet(self, joined: ListenerJoined, now: Seconds, report: Callable[[Event], None]) -> bool:
        """Start to watch a worker's process; False when it cannot be (it is gone, or its pid is none).

        Greeting again is harmless. `report` takes the end of one that makes room.
        """
        known = self._known.get(joined.listener)
        if known is not None:
            known.heard_at, known.is_suspected, known.doubts = now, False, 0
            known.is_awaited = False
            return True
        if not self._has_room(joined.listener, report):
            return False
        if (pidfd := _watchable(joined.listener, joined.pid)) is None:
            return False
        self._known[joined.listener] = _Worker(pidfd, now)
        self._inbox.watch(pidfd, lambda: self._lost(joined.listener))
        _log.info("worker.joined", worker=joined.listener, pid=joined.pid)
        return True

    def expect(self, worker: WorkerId, pid: int, now: Seconds) -> bool:
        """Watch a worker of a former scheduler's, which will greet; False when its process cannot be watched."""
        if (pidfd := _watchable(worker, pid)) is None:
            return False
        self._known[worker] = _Worker(pidfd, now, is_awaited=True)
        self._inbox.watch(pidfd, lambda: self._lost(worker))
        return True

    def hear(self, worker: WorkerId, now: Seconds) -> bool:
        """Note a sign of life; False when the worker is to greet first (unknown, or under suspicion)."""
        known = self._known.get(worker)
        if known is None:
            return False
        known.heard_at = now
        return not (known.is_suspected or known.is_awaited)

    def agree(self, worker: WorkerId, told: Tally, known: Tally) -> bool:
        """Compare what a worker's beat tells with what is known of it; False when it is to greet again.

        A connection that is cut takes messages with it, and neither side notices: a lease whose end was lost would
        be held for ever. Beats travel in line with the other messages, so the numbers differ in passing only.
        """
        beating = self._known[worker]
        beating.doubts = 0 if told == known else beating.doubts + 1
        if beating.doubts < _DOUBTS:
            return True
        _log.warning_of_a_peer("worker.differs", worker=worker, told=str(told), known=str(known))
        return False

    def silent_since(self, now: Seconds) -> list[ListenerSuspected]:
        """The workers that have become suspect by now."""
        silent = [
            (name, worker)
            for name, worker in self._known.items()
            if not worker.is_suspected and now - worker.heard_at >= _SILENCE
        ]
        for name, worker in silent:
            worker.is_suspected = True
            _log.warning("worker.silent", worker=name, for_s=now - worker.heard_at)
        return [ListenerSuspected(listener=name) for name, _ in silent]

    def next_check(self) -> Seconds | None:
        """When the next worker becomes suspect if it stays silent."""
        return min(
            (Seconds(w.heard_at + _SILENCE) for w in self._known.values() if not w.is_suspected),
            default=None,
        )

    def close(self) -> None:
        """Watch nobody any more."""
        for name in tuple(self._known):
            self._forget(name)

    def _has_room(self, newcomer: WorkerId, report: Callable[[Event], None]) -> bool:
        """Whether one more can be watched; of those that have fallen silent the first makes room."""
        if len(self._known) < MOST:
            return True
        silent = [name for name, worker in self._known.items() if worker.is_suspected]
        if not silent:
            _log.warning_of_a_peer("worker.refused", worker=newcomer, because=f"{MOST} are known")
            return False
        report(self._lost(min(silent, key=lambda name: self._known[name].heard_at)))
        return True

    def _lost(self, name: WorkerId) -> ListenerLost:
        """Watch it no more.

        Whose process ends becomes a message by that: what comes of it is sent, and alarms set, before the next wait.
        """
        tally = self._tally(name)
        # One that had nothing is missed by nobody: its listener was told to restart, or to end.
        tell = _log.info if tally == _NOTHING else _log.warning
        tell("worker.lost", worker=name, waiting=tally.waiting or None, held=tally.held or None)
        self._forget(name)
        return ListenerLost(listener=name)

    def _forget(self, name: WorkerId) -> None:
        worker = self._known.pop(name)
        self._inbox.forget(worker.pidfd)
        os.close(worker.pidfd)


def _watchable(worker: WorkerId, pid: int) -> int | None:
    """A descriptor of the process. What a peer or a file says need not be a pid at all."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    except (OSError, ValueError, OverflowError) as error:
        _log.warning_of_a_peer("worker.unwatchable", worker=worker, pid=pid, because=str(error))
        return None
