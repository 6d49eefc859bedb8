"""Looks at every host of the configuration once a second, in threads: one that hangs delays no other."""

import contextlib
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import pykka
from typing_extensions import override

from qmsup.actors.host_news import HostSeen, WatchHosts
from qmsup.actors.inbox import PollingInbox, TimeIsUp
from qmsup.core.fleet.sights import Sight
from qmsup.ids import HostName
from qmsup.log import Log
from qmsup.spec import HostSpec
from qmsup.units import Seconds
from qmsup.upstream.host_look import Looker

_EVERY = Seconds(1.0)
_THREADS = 16
"""Hosts that hang hold one each, for seconds."""

_log = Log("hosts")


@dataclass(frozen=True, slots=True)
class _Looked:
    looker: Looker
    sight: Sight | None


@dataclass(slots=True)
class _Watched:
    spec: HostSpec
    looker: Looker
    is_asked: bool = False
    was_healthy: bool | None = None


class HostMonitor(pykka.ThreadingActor):
    """Tell it WatchHosts."""

    def __init__(
        self, *, hosts: Mapping[HostName, HostSpec], report: Callable[[HostSeen], None]
    ) -> None:
        """Made by the scheduler actor.

        Args:
            hosts: to be looked at.
            report: takes what was seen; must not wait.
        """
        super().__init__()
        assert isinstance(self.actor_inbox, PollingInbox), "made below"
        self._inbox = self.actor_inbox
        self._report = report
        self._watched: dict[HostName, _Watched] = {}
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="host")
        self._first = hosts

    @staticmethod
    @override
    def _create_actor_inbox() -> PollingInbox:
        return PollingInbox()

    @override
    def on_start(self) -> None:
        self._watch(self._first)

    @override
    def on_stop(self) -> None:
        # Those that wait for an answer end with it: in a few seconds at most.
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._inbox.close()

    @override
    def on_receive(self, message: object) -> None:
        match message:
            case WatchHosts(hosts=hosts):
                self._watch(hosts)
            case _Looked():
                self._take(message)
            case TimeIsUp():
                self._look_at_all()
            case _:
                super().on_receive(message)

    def _watch(self, hosts: Mapping[HostName, HostSpec]) -> None:
        former = self._watched
        self._watched = {
            name: former[name]
            if name in former and former[name].spec == spec
            else _Watched(spec, Looker(spec))
            for name, spec in hosts.items()
        }
        self._look_at_all()

    def _look_at_all(self) -> None:
        for watched in self._watched.values():
            if not watched.is_asked:
                watched.is_asked = True
                looking = self._pool.submit(watched.looker.look)
                looking.add_done_callback(partial(_tell, self.actor_ref.tell, watched.looker))
        self._inbox.wake_at(Seconds(time.monotonic() + _EVERY) if self._watched else None)

    def _take(self, looked: _Looked) -> None:
        watched = next((w for w in self._watched.values() if w.looker is looked.looker), None)
        if watched is None:
            return  # it is not configured so any more
        watched.is_asked = False
        sight = looked.sight
        if sight is None:
            return
        if sight.is_healthy != watched.was_healthy:
            watched.was_healthy = sight.is_healthy
            _log.info(
                "host.healthy" if sight.is_healthy else "host.unhealthy",
                host=sight.host,
                kind=sight.kind.value or None,
                because=sight.because or None,
            )
        self._report(HostSeen(sight=sight))


def _tell(tell: Callable[[_Looked], None], looker: Looker, done: Future[Sight]) -> None:
    """In the pool's thread: hand over what was seen."""
    if done.cancelled():  # the monitor has ended
        return
    sight: Sight | None = None
    with contextlib.suppress(pykka.ActorDeadError):
        try:
            sight = done.result()
        except Exception:  # noqa: BLE001 - our bug, or an answer that nobody thought of
            _log.exception("host.cannot_be_looked_at")
        tell(_Looked(looker, sight))
