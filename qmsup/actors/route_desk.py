"""The scheduler actor's side of routes: what workers ask and hosts look like goes in, grants of hosts come out.

A request that is sent to this box goes on to the ordinary line from here; both know it then, until its end.
"""

import contextlib
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

import pykka

from qmsup.actors.answers import BadQuestionError
from qmsup.actors.gateway import Asked, Gateway
from qmsup.actors.host_news import HostSeen, WatchHosts
from qmsup.actors.hosts_shown import shown
from qmsup.actors.routed_messages import Routed, granted_to, moved, refused
from qmsup.actors.worker_messages import Greeted
from qmsup.core.fleet.chooser import HostView
from qmsup.core.fleet.dispatcher import Dispatcher
from qmsup.core.fleet.wishes import Fails, Goes, Said, Stands, Wish
from qmsup.core.scheduling.events import (
    Event,
    GrantAccepted,
    GrantDeclined,
    LeaseReleased,
    RequestAbandoned,
    RequestArrived,
)
from qmsup.core.scheduling.records import Model
from qmsup.core.scheduling.state import State
from qmsup.core.scheduling.views import Tally
from qmsup.errors import Code, Refusal
from qmsup.ids import Epoch, HostName, ModelId, RequestId, WorkerId
from qmsup.log import Log
from qmsup.spec import LOCAL, Spec
from qmsup.units import Seconds

_DRAINING = (
    "this box is being drained: it finishes what it has and takes no more until `qmsup undrain`"
)
_ENDING = "qmsup is ending: try again in a moment"
_RETRY = Seconds(2.0)

if TYPE_CHECKING:
    from qmsup.actors.host_monitor import HostMonitor

_log = Log("routes")


class RouteDesk:
    """For the scheduler actor's thread alone."""

    def __init__(
        self,
        spec: Spec,
        *,
        epoch: Epoch,
        state: State,
        gateway: Gateway,
        handle: Callable[[Event], None],
        report: Callable[[HostSeen], None],
    ) -> None:
        """Begin to look at the hosts, if there are any.

        Args:
            spec: the configuration in force.
            epoch: of this life.
            state: of the ordinary line, to be read.
            gateway: carries what is said to workers.
            handle: gives the ordinary line an event.
            report: takes what was seen of a host, in the monitor's thread; it is for `seen`.
        """
        self._spec = spec
        self._epoch = epoch
        self._state = state
        self._gateway = gateway
        self._handle = handle
        self._report = report
        self._arrivals: dict[RequestId, RequestArrived] = {}
        self._monitor: pykka.ActorRef[HostMonitor] | None = None
        self.dispatcher = Dispatcher(spec, self._local, _now())
        self._watch(spec)

    # ---- workers

    def ask(self, routed: Routed) -> None:
        """A request of a route wants a host."""
        wish = routed.wish
        if (refusal := self._closed()) is not None and not self.dispatcher.knows(wish.request):
            self._fail(wish, refusal)
            return
        if routed.arrived is not None:
            self._arrivals[wish.request] = routed.arrived
        self._tell(self.dispatcher.ask(wish, _now()))

    def takes(self, event: Event) -> bool:
        """Hear what became of a request; False = the ordinary line is to hear it, perhaps too."""
        match event:
            case GrantAccepted(request=request):
                is_mine = self.dispatcher.knows(request)
                return is_mine and not self.dispatcher.goes_by_line(request)
            case LeaseReleased(lease=lease):
                request = RequestId(lease)
            case RequestAbandoned(request=request) | GrantDeclined(request=request):
                pass
            case _:
                return False
        is_mine = self.dispatcher.knows(request)
        by_line = self.dispatcher.goes_by_line(request)
        self.over(request)
        return is_mine and not by_line

    def worker_of(self, request: RequestId) -> WorkerId | None:
        """Whose request of a route it is; None = it is on none."""
        return self.dispatcher.worker_of(request)

    def over(self, request: RequestId) -> None:
        """A request has ended, however that was; one that is on no route is none of ours."""
        if self._arrivals.pop(request, None) is not None or self.dispatcher.knows(request):
            self._tell(self.dispatcher.end(request, _now()))

    def greeted(self, greeted: Greeted) -> None:
        """A worker told all that it has."""
        self._arrivals.update(
            (routed.wish.request, routed.arrived)
            for routed in greeted.waiting
            if routed.arrived is not None
        )
        held = [(routed.wish, host) for routed, host in greeted.held]
        waiting = [routed.wish for routed in greeted.waiting]
        self._tell(self.dispatcher.greeted(greeted.event.listener, held, waiting, _now()))
        self._forget()

    def lost(self, worker: WorkerId) -> None:
        """A worker's process is gone."""
        self._tell(self.dispatcher.lost(worker, _now()))
        self._forget()

    def tally(self, worker: WorkerId, by_line: Tally) -> Tally:
        """What a worker has, with what it has in the ordinary line."""
        waiting, held = self.dispatcher.counts(worker)
        return Tally(waiting=by_line.waiting + waiting, held=by_line.held + held)

    # ---- hosts

    def seen(self, news: HostSeen) -> None:
        """A host was looked at."""
        self._tell(self.dispatcher.seen(news.sight, _now()))

    def apply(self, spec: Spec) -> None:
        """Another configuration is in force."""
        self._spec = spec
        self._tell(self.dispatcher.configure(spec, _now()))
        self._watch(spec)

    def drain(self, host: HostName) -> None:
        """Have a host take nothing new."""
        _log.info("host.draining", host=host)
        self._tell(self.dispatcher.drain(host, _now()))

    def undrain(self, host: HostName) -> None:
        """Have it take requests again."""
        _log.info("host.not_draining", host=host)
        self.dispatcher.undrain(host)

    def up(self, now: Seconds) -> dict[str, bool]:
        """Whether each host can be used, by name; this box can."""
        sights = self.dispatcher.sights
        seen = {host: sights.get(HostName(host)) for host in self._spec.hosts}
        return {LOCAL: True, **{h: s is not None and s.is_trusted(now) for h, s in seen.items()}}

    def answer(self, asked: Asked) -> object | None:
        """Answer a question about hosts, or about one of them; None = it is about something else.

        Raises:
            BadQuestionError: there is no such host.
        """
        if asked.verb == "hosts":
            loaded = [model for model, known in self._state.models.items() if known.is_ready]
            return {"hosts": shown(self._spec, self.dispatcher, _now(), loaded)}
        if asked.verb not in ("drain", "undrain") or "host" not in asked.args:
            return None
        host = asked.args["host"]
        if not isinstance(host, str) or (host != LOCAL and host not in self._spec.hosts):
            known = ", ".join((LOCAL, *self._spec.hosts))
            raise BadQuestionError(f"{asked.verb}: there is no host {host!r}; known are {known}")
        if asked.verb == "drain":
            self.drain(HostName(host))
            return {"text": f"host {host} takes no new requests of routes"}
        self.undrain(HostName(host))
        return {"text": f"host {host} takes requests of routes again"}

    # ---- time

    @property
    def due(self) -> Seconds | None:
        """When `work` is to be called."""
        return self.dispatcher.due()

    def work(self) -> None:
        """Time has passed."""
        self._tell(self.dispatcher.work(_now()))

    # ---- inside

    def _watch(self, spec: Spec) -> None:
        if self._monitor is not None:
            with contextlib.suppress(pykka.ActorDeadError):
                self._monitor.tell(WatchHosts(hosts=spec.hosts))
        elif spec.hosts:
            from qmsup.actors.host_monitor import HostMonitor  # most boxes need no HTTP library

            self._monitor = HostMonitor.start(hosts=spec.hosts, report=self._report)

    def _local(self, model: ModelId) -> HostView:
        """This box as a host."""
        known = self._state.models.get(model)
        groups = self._state.line.groups
        free = sum(_free(each) for each in self._state.models.values())
        return HostView(
            is_healthy=self._closed() is None,
            is_loaded=known is not None and known.is_ready,
            can_serve=known is not None,
            free=free,
            queued=sum(len(g.waiters) for c, g in groups.items() if c.model == model),
            context=None if known is None else known.context,
        )

    def _closed(self) -> Refusal | None:
        if self._state.ending is not None:
            return Refusal(code=Code.SHUTTING_DOWN, message=_ENDING, retry_after=_RETRY)
        if self._state.is_draining:
            return Refusal(code=Code.DRAINING, message=_DRAINING, retry_after=_RETRY)
        return None

    def _tell(self, said: Iterable[Said]) -> None:
        for one in said:
            match one:
                case Goes(wish=wish, host=host) if host == LOCAL:
                    self._to_line(wish)
                case Goes():
                    self._grant(one)
                case Stands(wish=wish):
                    self._gateway.send(wish.worker, moved(one))
                case Fails(wish=wish, refusal=refusal, count_at=host):
                    self._fail(wish, refusal, host)
                case _:
                    assert_never(one)

    def _to_line(self, wish: Wish) -> None:
        arrived = self._arrivals.get(wish.request)
        if arrived is None:
            return
        known = self._state.models.get(wish.model)
        if wish.is_look and known is not None and not known.is_ready:
            self._tell(self.dispatcher.end(wish.request, _now()))
            self._fail(wish, _not_loaded(wish.model))
            return
        route = self._spec.route_named(wish.route)
        is_tracked = wish.is_control or (route is not None and not route.queue)
        self._handle(replace(arrived, is_tracked=is_tracked))

    def _grant(self, goes: Goes) -> None:
        wish, host = goes.wish, goes.host
        place = self._spec.hosts.get(host) or self._spec.peers.get(host)
        if place is None:  # gone with the configuration, in this very moment
            return
        granted = granted_to(goes, place.upstream, self._epoch)
        self._gateway.send(wish.worker, granted)
        _log.debug("route.sent", request=wish.request, route=wish.route, host=host)

    def _fail(self, wish: Wish, refusal: Refusal, count_at: HostName | None = None) -> None:
        self._arrivals.pop(wish.request, None)
        upstream = "" if count_at is None else self._upstream_of(count_at, wish.model)
        host = count_at if upstream and count_at is not None else ""
        self._gateway.send(wish.worker, refused(wish, refusal, host, upstream))
        _log.info("route.refused", request=wish.request, route=wish.route, code=refusal.code.value)

    def _upstream_of(self, host: HostName, model: ModelId) -> str:
        """Where it answers; "" = on this box nobody does for the model."""
        if host != LOCAL:
            return self._spec.hosts[host].upstream
        known = self._state.models.get(model)
        child = None if known is None or not known.is_ready else known.child
        return "" if child is None else child.upstream

    def _forget(self) -> None:
        knows = self.dispatcher.knows
        self._arrivals = {r: arrived for r, arrived in self._arrivals.items() if knows(r)}


def _not_loaded(model: ModelId) -> Refusal:
    message = f"model {model} is not loaded on this box, and looking at it does not load it"
    return Refusal(code=Code.MODEL_NOT_LOADED, message=message)


def _free(model: Model) -> int:
    limit = model.spec.slots if model.child is None else model.limit
    return max(0, limit - len(model.leases))


def _now() -> Seconds:
    return Seconds(time.monotonic())
