"""Which host each request of a route goes to, from its arrival to its end: limiter, chooser and leases together.

    arrives ──▶ unseen hosts? waits for the first look at them
            ──▶ the host of its lease, else the best one, else a peer, else refused
            ──▶ too large for a slot there? refused
            ──▶ a slot: Goes; a place in that host's line: Stands; or refused

A host that is lost, drained or removed gives its line back: who waits there is dealt with as if it arrived now. Who is
in flight there is left alone: whoever relays it finds out, and comes again with the host among those that were tried.

Nothing here looks at a clock or a socket. Every call says what follows, for whoever sends it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from heapq import heappop, heappush

from qmsup.core.fleet import context_guard
from qmsup.core.fleet.affinity import LeaseKey, RouteLeases, lease_key
from qmsup.core.fleet.chooser import HostView, best, no_host
from qmsup.core.fleet.limiter import Full, Heir, Limiter, Queued
from qmsup.core.fleet.sights import Sight
from qmsup.core.fleet.wishes import Fails, Goes, Said, Stands, Wish
from qmsup.errors import Code, Refusal
from qmsup.ids import HostName, ModelId, RequestId, WorkerId
from qmsup.spec import LOCAL, RouteSpec, Spec
from qmsup.units import Seconds

_FIRST_LOOK_WITHIN = Seconds(3.0)
"""So long a request waits for hosts that nobody has looked at yet: the process has just started, or they are new."""
_RETRY = Seconds(2.0)


class _State(Enum):
    UNDECIDED = "undecided"
    QUEUED = "queued"
    GONE = "gone"


@dataclass(slots=True)
class _Entry:
    wish: Wish
    since: Seconds
    state: _State = _State.UNDECIDED
    host: HostName = LOCAL


class Dispatcher:
    """Of the scheduler's process; there is one."""

    def __init__(self, spec: Spec, local: Callable[[ModelId], HostView], now: Seconds) -> None:
        """Know the hosts, and nothing of how they are.

        Args:
            spec: names hosts, peers and routes.
            local: what this box is like, with one model in mind.
            now: the monotonic clock.
        """
        self.limiter = Limiter()
        self.leases = RouteLeases()
        self.sights: dict[HostName, Sight] = {}
        self.draining: set[HostName] = set()
        self._spec = spec
        self._local = local
        self._entries: dict[RequestId, _Entry] = {}
        self._first_look_by = self._new_seen_by = Seconds(now + _FIRST_LOOK_WITHIN)
        self._deadlines: list[tuple[Seconds, RequestId]] = []
        """A heap. Of requests that wait no longer, it is forgotten when its time comes."""
        self._set_slots(Spec(models={}), spec, now)

    # ---- requests

    def ask(self, wish: Wish, now: Seconds) -> list[Said]:
        """A request arrives, or is told of again."""
        known = self._entries.get(wish.request)
        if known is not None:
            return self._again(known)
        for host in wish.tried:
            # Whoever comes next need not find out too. The next look shows what is true.
            if (sight := self.sights.get(host)) is not None and sight.at < now:
                self.sights[host] = replace(sight, is_healthy=False, because="it did not answer")
        entry = self._entries[wish.request] = _Entry(wish, now)
        if wish.timeout:
            heappush(self._deadlines, (Seconds(now + wish.timeout), wish.request))
        return self._decide(entry, now)

    def end(self, request: RequestId, now: Seconds) -> list[Said]:
        """It is over, or its client has gone. Ends what it held or waited for; a second call does nothing."""
        entry = self._entries.pop(request, None)
        return [] if entry is None else self._free(entry, now)

    def goes_by_line(self, request: RequestId) -> bool:
        """Whether it was sent to this box, so that the ordinary line has to do with it too."""
        entry = self._entries.get(request)
        return entry is not None and entry.state is _State.GONE and entry.host == LOCAL

    def knows(self, request: RequestId) -> bool:
        """Whether it is one of a route."""
        return request in self._entries

    def worker_of(self, request: RequestId) -> WorkerId | None:
        """Who relays it; None = it is not known here."""
        entry = self._entries.get(request)
        return None if entry is None else entry.wish.worker

    # ---- workers

    def greeted(
        self,
        worker: WorkerId,
        held: Iterable[tuple[Wish, HostName]],
        waiting: Iterable[Wish],
        now: Seconds,
    ) -> list[Said]:
        """A worker told all it has: what it does not name is over."""
        held, waiting = tuple(held), tuple(waiting)
        named = {wish.request for wish, _ in held} | {wish.request for wish in waiting}
        of_worker = [e.wish.request for e in self._entries.values() if e.wish.worker == worker]
        said = [s for r in of_worker if r not in named for s in self.end(r, now)]
        for wish, host in held:
            if wish.request not in self._entries:
                self._restore(wish, host, now)
        for wish in waiting:
            said += self.ask(wish, now)
        return said

    def lost(self, worker: WorkerId, now: Seconds) -> list[Said]:
        """A worker's process is gone, and all that it relayed."""
        return self.greeted(worker, (), (), now)

    def counts(self, worker: WorkerId) -> tuple[int, int]:
        """How many requests of a worker wait, and how many are at a host; not those in this box's own line."""
        mine = [e for e in self._entries.values() if e.wish.worker == worker]
        gone = [e for e in mine if e.state is _State.GONE]
        return len(mine) - len(gone), sum(e.host != LOCAL for e in gone)

    # ---- hosts

    def seen(self, sight: Sight, now: Seconds) -> list[Said]:
        """A host was looked at."""
        if sight.host not in self._spec.hosts:
            return []
        self.sights[sight.host] = sight
        said = [] if sight.is_healthy else self._give_line_back(sight.host, now)
        for entry in [e for e in self._entries.values() if e.state is _State.UNDECIDED]:
            said += self._decide(entry, now)
        return said

    def drain(self, host: HostName, now: Seconds) -> list[Said]:
        """It takes nothing new. What it does goes on."""
        self.draining.add(host)
        return self._give_line_back(host, now)

    def undrain(self, host: HostName) -> None:
        """It takes requests again."""
        self.draining.discard(host)

    def configure(self, spec: Spec, now: Seconds) -> list[Said]:
        """Another configuration is in force."""
        old, self._spec = self._spec, spec
        for host in old.hosts:
            if host not in spec.hosts:
                self.sights.pop(host, None)
                self.draining.discard(host)
        if not spec.hosts.keys() <= old.hosts.keys():
            self._new_seen_by = Seconds(now + _FIRST_LOOK_WITHIN)
        queued = [e for e in self._entries.values() if e.state is _State.QUEUED]
        lost = [entry for entry in queued if not self._may_wait_on(entry)]
        self._step_out(lost, now)  # before slots change hands
        return [*self._set_slots(old, spec, now), *self._decide_anew(lost, now)]

    # ---- time

    def due(self) -> Seconds | None:
        """When `work` has something to do, if nothing happens before."""
        deadlines = self._deadlines
        while deadlines and not self._waits(deadlines[0][1]):
            heappop(deadlines)
        times = [at for at, _ in deadlines[:1]]
        if (expiry := self.leases.next_expiry()) is not None:
            times.append(expiry)
        return min(times, default=None)

    def work(self, now: Seconds) -> list[Said]:
        """Time has passed."""
        self.leases.expire(now)
        said: list[Said] = []
        while self._deadlines and self._deadlines[0][0] <= now:
            _, request = heappop(self._deadlines)
            entry = self._entries.get(request)
            if entry is None or entry.state is _State.GONE:
                continue
            wish = entry.wish
            if wish.timeout and now >= entry.since + wish.timeout:
                del self._entries[request]
                said += [*self._free(entry, now), _timed_out(wish)]
            elif entry.state is _State.UNDECIDED:
                said += self._decide(entry, now)
        return said

    # ---- inside

    def _decide(self, entry: _Entry, now: Seconds) -> list[Said]:
        wish = entry.wish
        route = self._spec.route_named(wish.route)
        if route is None:
            return [self._fail(entry, _no_route(wish))]
        if self._awaits_a_look(entry, route, self._first_look_by, now):
            return []
        info = self._info(wish, now)
        key = lease_key(route.affinity, wish.route, wish.model, wish.conversation)
        host = self.leases.host_of(key, route.hosts, info, now=now)
        view = None if host is None else info(host)
        if view is None or not view.has_model:  # a reload may have taken it away there
            host = best(route.hosts, info) or host
        if host is None:
            is_waiting = self._awaits_a_look(entry, route, self._new_seen_by, now)
            return [] if is_waiting else [self._to_peer(entry, route, now)]
        return [self._send(entry, key, host, route, now)]

    def _send(
        self, entry: _Entry, key: LeaseKey, host: HostName, route: RouteSpec, now: Seconds
    ) -> Said:
        wish = entry.wish
        waited = Seconds(0.0)
        if not wish.is_control:
            if (fails := self._too_long(wish, host, now)) is not None:
                self._entries.pop(wish.request, None)
                return fails
            if host != LOCAL and route.queue:
                answer = self.limiter.acquire(wish.request, host, wish.model, now=now)
                if isinstance(answer, Full):
                    return self._fail(entry, replace(answer.refusal, retry_after=_RETRY))
                if isinstance(answer, Queued):
                    self.leases.keep(key, host, wish.request, now=now)
                    entry.state, entry.host = _State.QUEUED, host
                    return Stands(wish=wish, place=answer.place)
                waited = answer.waited
            elif host != LOCAL:
                self.limiter.track(wish.request, host, wish.model)
        self.leases.keep(key, host, wish.request, now=now)
        entry.state, entry.host = _State.GONE, host
        return Goes(wish=wish, host=host, waited=waited)

    def _to_peer(self, entry: _Entry, route: RouteSpec, now: Seconds) -> Said:
        wish = entry.wish
        for name in route.peers:
            peer = self._spec.peers.get(name)
            if peer is not None and name not in wish.tried and wish.model in peer.models:
                entry.state, entry.host = _State.GONE, name
                return Goes(wish=wish, host=name)
        refusal = no_host(wish.model, route.hosts, self._info(wish, now), tried=wish.tried)
        return self._fail(entry, replace(refusal, retry_after=_RETRY))

    def _again(self, entry: _Entry) -> list[Said]:
        if entry.state is _State.GONE:
            return [Goes(wish=entry.wish, host=entry.host)]
        if entry.state is _State.UNDECIDED:
            return []
        line = self.limiter.waiting(entry.host, entry.wish.model)
        return [Stands(wish=entry.wish, place=line.index(entry.wish.request) + 1)]

    def _restore(self, wish: Wish, host: HostName, now: Seconds) -> None:
        """A request of a former scheduler's life, which is at its host."""
        self._entries[wish.request] = _Entry(wish, now, _State.GONE, host)
        route = self._spec.route_named(wish.route)
        if route is None or host not in route.hosts:
            return
        if not wish.is_control and host != LOCAL:
            self.limiter.track(wish.request, host, wish.model)
        key = lease_key(route.affinity, wish.route, wish.model, wish.conversation)
        self.leases.keep(key, host, wish.request, now=now)

    def _free(self, entry: _Entry, now: Seconds) -> list[Said]:
        wish = entry.wish
        self.leases.done(wish.request, now=now)
        heir = self.limiter.leave(wish.request, now=now)
        return self._moved(entry.host, wish.model, () if heir is None else (heir,))

    def _fail(self, entry: _Entry, refusal: Refusal) -> Fails:
        self._entries.pop(entry.wish.request, None)
        return Fails(wish=entry.wish, refusal=refusal)

    def _moved(self, host: HostName, model: ModelId, heirs: tuple[Heir, ...]) -> list[Said]:
        """Slots went to some who waited; the others have moved up."""
        said: list[Said] = []
        for heir in heirs:
            entry = self._entries[heir.request]
            entry.state = _State.GONE
            said.append(Goes(wish=entry.wish, host=host, waited=heir.waited))
        line = self.limiter.waiting(host, model)
        said += [
            Stands(wish=self._entries[request].wish, place=place)
            for place, request in enumerate(line, 1)
        ]
        return said

    def _give_line_back(self, host: HostName, now: Seconds) -> list[Said]:
        waiting = [e for e in self._entries.values() if e.state is _State.QUEUED and e.host == host]
        self._step_out(waiting, now)
        return self._decide_anew(waiting, now)

    def _may_wait_on(self, entry: _Entry) -> bool:
        """Whether what it waits for may still be had, and had by its route."""
        host, route = self._spec.hosts.get(entry.host), self._spec.route_named(entry.wish.route)
        if route is None or host is None:
            return False
        return entry.host in route.hosts and entry.wish.model in host.models

    def _step_out(self, waiting: Iterable[_Entry], now: Seconds) -> None:
        for entry in waiting:
            self.limiter.leave(entry.wish.request, now=now)
            self.leases.done(entry.wish.request, now=now)

    def _decide_anew(self, lost: Iterable[_Entry], now: Seconds) -> list[Said]:
        """Deal with those who have stepped out of their lines; who stays there has moved up."""
        lines = dict.fromkeys((entry.host, entry.wish.model) for entry in lost)
        said = [said for entry in lost for said in self._decide(entry, now)]
        return said + [moved for line in lines for moved in self._moved(*line, ())]

    def _set_slots(self, old: Spec, new: Spec, now: Seconds) -> list[Said]:
        said: list[Said] = []
        for host, spec in new.hosts.items():
            for model, slots in spec.models.items():
                heirs = self.limiter.configure(
                    host, model, parallel=slots.parallel, queue_max=slots.queue_max, now=now
                )
                said += self._moved(host, model, heirs) if heirs else []
        for host, spec in old.hosts.items():
            kept = new.hosts[host].models if host in new.hosts else {}
            for model in spec.models:
                if model not in kept:
                    heirs = self.limiter.unconfigure(host, model, now=now)
                    said += self._moved(host, model, heirs) if heirs else []
        return said

    def _awaits_a_look(self, entry: _Entry, route: RouteSpec, by: Seconds, now: Seconds) -> bool:
        """Have it wait, not beyond `by`, if one of the hosts that it may go to was not looked at yet."""
        unseen = [h for h in route.hosts if h in self._spec.hosts and h not in self.sights]
        if not unseen or now >= by:
            return False
        heappush(self._deadlines, (by, entry.wish.request))
        entry.state = _State.UNDECIDED
        return True

    def _waits(self, request: RequestId) -> bool:
        entry = self._entries.get(request)
        return entry is not None and entry.state is not _State.GONE

    def _info(self, wish: Wish, now: Seconds) -> Callable[[HostName], HostView | None]:
        def view(host: HostName) -> HostView | None:
            if host in wish.tried:
                return None
            return self.view(host, wish.model, now)

        return view

    def view(self, host: HostName, model: ModelId, now: Seconds) -> HostView | None:
        """What is known of a host, with one model in mind; None = it is not one of ours."""
        if host == LOCAL:
            return replace(self._local(model), is_draining=LOCAL in self.draining)
        spec, sight = self._spec.hosts.get(host), self.sights.get(host)
        if spec is None:
            return None
        return HostView(
            is_healthy=sight is not None and sight.is_trusted(now),
            is_draining=host in self.draining,
            is_loaded=sight is not None and model in sight.loaded,
            can_serve=model in spec.models,
            free=self.limiter.free_slots(host),
            queued=self.limiter.queued(host, model),
            weight=spec.weight,
            context=None if sight is None else sight.contexts.get(model),
        )

    def _too_long(self, wish: Wish, host: HostName, now: Seconds) -> Fails | None:
        view = self.view(host, wish.model, now)
        context = None if view is None else view.context
        counted = wish.tokens if wish.is_counted else None
        refusal = context_guard.verdict(
            host, wish.model, estimated=wish.tokens, counted=counted, context=context
        )
        if refusal is None:
            return None
        assert context is not None, "else everything passes"
        is_sure = wish.is_counted or not context_guard.is_doubtful(wish.tokens, context)
        return Fails(wish=wish, refusal=refusal, count_at=None if is_sure else host)


def _no_route(wish: Wish) -> Refusal:
    message = f"there is no route {wish.route} any more: the configuration has changed"
    return Refusal(code=Code.ROUTE_NOT_FOUND, message=message)


def _timed_out(wish: Wish) -> Fails:
    message = f"no host had a slot for {wish.model} within {wish.timeout:g} s (X-QM-Timeout-Ms)"
    refusal = Refusal(code=Code.WAIT_TIMEOUT, message=message, retry_after=_RETRY)
    return Fails(wish=wish, refusal=refusal)
