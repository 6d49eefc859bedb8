"""Looks at every host of the configuration once a second, each in a thread: one that hangs delays no other."""

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pykka
from typing_extensions import override

from qmsup.actors import mishaps
from qmsup.actors.enduring import Enduring
from qmsup.actors.host_news import HostSeen, WatchHosts
from qmsup.actors.inbox import PollingInbox, TimeIsUp
from qmsup.core.fleet.sights import Sight
from qmsup.ids import HostName
from qmsup.log import Log
from qmsup.spec import HostSpec
from qmsup.units import Seconds
from qmsup.upstream.host_look import Looker

_EVERY = Seconds(1.0)

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


class HostMonitor(Enduring):
    """Tell it WatchHosts."""

    PART = "hosts"

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
        self._first = hosts

    @staticmethod
    @override
    def _create_actor_inbox() -> PollingInbox:
        return PollingInbox()

    @override
    def begin(self) -> None:
        self._inbox.wake_at(_soon())
        self._watch(self._first)

    @override
    def on_stop(self) -> None:
        self._inbox.close()

    @override
    def take(self, message: object) -> None:
        match message:
            case WatchHosts(hosts=hosts):
                self._watch(hosts)
            case _Looked():
                self._take(message)
            case TimeIsUp():
                self._look_at_all()
            case _:
                raise TypeError(type(message).__name__)

    @override
    def mend(self, message: object) -> None:
        self._inbox.wake_at(_soon())

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
                # Nobody waits for it at the end of the process: a name may take a minute to be looked up.
                threading.Thread(
                    target=_look,
                    args=(watched.looker, self.actor_ref.tell),
                    name=f"host {watched.spec.name}",
                    daemon=True,
                ).start()
                watched.is_asked = True
        self._inbox.wake_at(_soon() if self._watched else None)

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


def _soon() -> Seconds:
    return Seconds(time.monotonic() + _EVERY)


def _look(looker: Looker, tell: Callable[[_Looked], None]) -> None:
    """In a thread of its own: look, and hand over what was seen."""
    sight: Sight | None = None
    try:
        sight = looker.look()
    except Exception as error:  # noqa: BLE001 - our bug, or an answer that nobody thought of
        mishaps.note(HostMonitor.PART, "a look", error)
        _log.exception_again("host.cannot_be_looked_at")
    with contextlib.suppress(pykka.ActorDeadError):  # the monitor has ended
        tell(_Looked(looker, sight))
