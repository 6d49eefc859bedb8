"""Which host a conversation is on, so that its next turn finds the prompt cache that the last one left there.

A route lease ties a key (route, model, conversation) to a host. It moves only when that host is unhealthy, draining
or gone, never because another one is freer, and ends when it was idle for `IDLE_EXPIRY`. Idle means without requests:
a turn that takes an hour keeps its lease, so that a control call meanwhile reaches the same host.

The order of things for one request:

    host = leases.host_of(key, hosts, info, now=now) or best(hosts, info)
    ... the limiter gives it a slot there, or a place in the line ...
    leases.keep(key, host, request, now=now)
    ... it ends, however it ends ...
    leases.done(request, now=now)

A request that was refused keeps nothing: a first turn that met a full host may go to another when it is tried again.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from qmsup.core.fleet.chooser import Info
from qmsup.ids import HostName, ModelId, RequestId, RouteName
from qmsup.spec import Affinity
from qmsup.units import Seconds

IDLE_EXPIRY = Seconds(30 * 60.0)
"""Longer than a client ponders between two turns; by then a busy host has given the cache to others anyway."""


class LeaseKey(NamedTuple):
    """What stays together on one host. An empty conversation is the route itself."""

    route: RouteName
    model: ModelId
    conversation: str


def lease_key(affinity: Affinity, route: RouteName, model: ModelId, conversation: str) -> LeaseKey:
    """The key that a request of a route goes by, chat or control.

    Args:
        affinity: the route's own; with `route` all of a model's requests share one lease.
        route: the concrete name, where a template serves it.
        model: after aliases and the route's default.
        conversation: what the client calls it, or a fingerprint of it; "" = unknown, which leases the route itself.
    """
    return LeaseKey(route, model, "" if affinity is Affinity.ROUTE else conversation)


@dataclass(slots=True)
class _Lease:
    host: HostName
    requests: set[RequestId] = field(default_factory=set)


class RouteLeases:
    """All leases of all routes."""

    __slots__ = ("_idle_since", "_key_of", "_leases")

    def __init__(self) -> None:
        self._leases: dict[LeaseKey, _Lease] = {}
        self._key_of: dict[RequestId, LeaseKey] = {}
        # The leases without requests, longest idle first: `now` never runs backwards.
        self._idle_since: dict[LeaseKey, Seconds] = {}

    def host_of(
        self, key: LeaseKey, hosts: Collection[HostName], info: Info, *, now: Seconds
    ) -> HostName | None:
        """The host that a conversation has to stay on. Asking starts its idle time anew.

        Args:
            key: whose.
            hosts: those of the route; a lease of any other is as good as gone.
            info: what is known of a host.
            now: the monotonic clock.

        Returns:
            None when there is no lease, or its host cannot be used now: choose one, and `keep` it. Until that
            happens the lease stays as it is, and a host that comes back has its conversations back.
        """
        self.expire(now)
        lease = self._leases.get(key)
        if lease is None or lease.host not in hosts:
            return None
        view = info(lease.host)
        if view is None or not view.is_eligible:
            return None
        if not lease.requests:
            self._rest(key, now)
        return lease.host

    def keep(self, key: LeaseKey, host: HostName, request: RequestId, *, now: Seconds) -> None:
        """The request goes to this host, and so do the next ones of its key."""
        self.done(request, now=now)
        lease = self._leases.setdefault(key, _Lease(host))
        lease.host = host
        lease.requests.add(request)
        self._key_of[request] = key
        self._idle_since.pop(key, None)

    def done(self, request: RequestId, *, now: Seconds) -> None:
        """The request has ended, or its listener has. A second call does nothing."""
        key = self._key_of.pop(request, None)
        if key is None:
            return
        lease = self._leases[key]
        lease.requests.remove(request)
        if not lease.requests:
            self._rest(key, now)

    def expire(self, now: Seconds) -> tuple[LeaseKey, ...]:
        """Drop what was idle too long, and say what. `host_of` does so too; this is for quiet times."""
        expired: list[LeaseKey] = []
        for key, since in self._idle_since.items():
            if now < since + IDLE_EXPIRY:
                break
            expired.append(key)
        for key in expired:
            del self._leases[key], self._idle_since[key]
        return tuple(expired)

    def next_expiry(self) -> Seconds | None:
        """When the next lease ends if nothing happens; None = none ever would."""
        since = next(iter(self._idle_since.values()), None)
        return None if since is None else Seconds(since + IDLE_EXPIRY)

    def hosts(self) -> dict[LeaseKey, HostName]:
        """Every lease and its host, for operators."""
        return {key: lease.host for key, lease in self._leases.items()}

    def _rest(self, key: LeaseKey, now: Seconds) -> None:
        self._idle_since.pop(key, None)
        self._idle_since[key] = now
