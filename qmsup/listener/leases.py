"""The leases that a worker has, as the scheduler knows them: in use, or lent and kept for what comes next.

A lease that is lent may serve further requests for its model, for the few milliseconds it is lent for. The scheduler
counts it as in use until it is given back, and then hears of all that was done under it.
"""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from qmsup.ids import ModelId, RequestId
from qmsup.listener.outcome import Outcome
from qmsup.wire import listening
from qmsup.wire.listening import Ask, Done, Granted, Holding, Lasts, Use

A = TypeVar("A")
"""Who uses a lease."""

_NEVER = float("inf")
_LASTS_AFTER = 0.02
"""Seconds. A further use that is not over so long after the time its lease was lent for has a lease of its own: the
scheduler is to know soon who uses a model, and for how short ones do it need not."""


@dataclass(slots=True)
class _Lease(Generic[A]):
    holding: Holding
    grant: Granted
    until: float
    """Until when it is lent."""
    lasts_at: float
    """When a further use of it counts as one that lasts."""
    user: A | None
    ask: Ask | None = None
    """Of the further use under way."""
    first: tuple[str, bool] | None = None
    """How the request ended that it was granted for."""
    uses: list[Use] = field(default_factory=list)


class Leases(Generic[A]):
    """See the module. Times are of the monotonic clock."""

    def __init__(self) -> None:
        self._leases: dict[RequestId, _Lease[A]] = {}
        self._further: dict[RequestId, RequestId] = {}
        """Requests under a lease that was granted for another one."""
        self._kept: dict[ModelId, list[RequestId]] = {}
        """Those that nobody uses, oldest first."""
        self.due = _NEVER
        """When `overdue` is to be asked, at the latest."""

    def __len__(self) -> int:
        """All of them: kept ones count as in use."""
        return len(self._leases)

    def __contains__(self, request: RequestId) -> bool:
        """Whether a request was granted a lease that is not given back."""
        return request in self._leases

    def holdings(self) -> tuple[Holding, ...]:
        """What a scheduler is told that does not know them."""
        return tuple(lease.holding for lease in self._leases.values())

    def add(self, ask: Ask, grant: Granted, user: A, now: float) -> None:
        """A lease was granted."""
        until = now + grant.lent_ms / 1000 if grant.lent_ms and ask.routed is None else 0.0
        lasts_at = until + _LASTS_AFTER
        self._leases[grant.request] = _Lease(_holding(ask, grant), grant, until, lasts_at, user)

    def use(self, ask: Ask, user: A, now: float) -> Granted | None:
        """Use a kept lease for a request. None = there is none."""
        kept = self._kept.get(ask.model)
        while kept:
            lease = self._leases[kept.pop()]
            if ask.routed is None and lease.until > now:
                lease.user, lease.ask = user, ask
                self._further[ask.request] = lease.grant.request
                self.due = min(self.due, lease.lasts_at)
                return _granted_again(lease.grant, ask)
            kept.append(lease.grant.request)
            break
        return None

    def leave(self, request: RequestId) -> None:
        """A further use was not begun: its lease is kept as before."""
        lease = self._leases[self._further.pop(request)]
        lease.user = lease.ask = None
        self._keep(lease)

    def end(self, request: RequestId, outcome: str, *, served: bool, now: float) -> Done | None:
        """A request is over. What is returned gives its lease back; None = it is kept, or there is none."""
        name = self._further.pop(request, request)
        lease = self._leases.get(name)
        if lease is None or lease.user is None:
            return None
        hold_ms = _note(lease, request, outcome, served=served)
        lease.user = lease.ask = None
        if outcome == Outcome.FINISHED and not hold_ms and lease.until > now:
            self._keep(lease)
            return None
        if outcome == Outcome.FAILED and not served:
            self._doubt(lease.grant.model)
        return self._give_back(lease)

    def user_of(self, name: RequestId) -> A | None:
        """Who uses the lease that was granted for a request."""
        lease = self._leases.get(name)
        return None if lease is None else lease.user

    def ask_of(self, name: RequestId) -> Ask | None:
        """The request that uses a lease which was granted for another one."""
        lease = self._leases.get(name)
        return None if lease is None else lease.ask

    def forget(self, name: RequestId) -> None:
        """The scheduler has ended a lease: one that is only kept is gone."""
        lease = self._leases.get(name)
        if lease is not None and lease.user is None:
            self._kept[lease.grant.model].remove(name)
            del self._leases[name]

    def overdue(self, now: float) -> list[Done | Lasts]:
        """Give back what has been kept for long enough, and tell of further uses that last."""
        over = [name for name in self._all_kept() if self._leases[name].until <= now]
        told: list[Done | Lasts] = [self._take_back(name) for name in over]
        last = [r for r, name in self._further.items() if self._leases[name].lasts_at <= now]
        for request in last:
            told += self._pass_on(request)
        self.due = self._next_due()
        return told

    def recall(self) -> list[Done]:
        """Give back what is kept; what is in use will be, too, when its work is over."""
        told = [self._take_back(name) for name in self._all_kept()]
        for lease in self._leases.values():
            lease.until = 0.0
        self.due = self._next_due()
        return told

    def _next_due(self) -> float:
        kept = (self._leases[name].until for name in self._all_kept())
        in_use = (self._leases[name].lasts_at for name in self._further.values())
        return min((*kept, *in_use), default=_NEVER)

    def _pass_on(self, request: RequestId) -> tuple[Lasts, Done]:
        """A further use has a lease of its own from now on; the one that was lent comes back."""
        lease = self._leases[self._further.pop(request)]
        ask, grant = lease.ask, lease.grant
        assert ask is not None, "it is in further use"
        own = _granted_again(grant, ask)
        self._leases[request] = _Lease(_holding(ask, own), own, 0.0, _NEVER, lease.user)
        lasts = Lasts(
            request=request,
            model=grant.model,
            incarnation=grant.incarnation,
            hold_ms=ask.hold_ms,
            conversation=ask.conversation,
            client=ask.client,
        )
        return lasts, self._give_back(lease)

    def _all_kept(self) -> list[RequestId]:
        return [name for names in self._kept.values() for name in names]

    def _keep(self, lease: _Lease[A]) -> None:
        self._kept.setdefault(lease.grant.model, []).append(lease.grant.request)
        self.due = min(self.due, lease.until)

    def _doubt(self, model: ModelId) -> None:
        """Its child may have died: who comes next is not to be sent there."""
        for name in self._kept.get(model, ()):
            self._leases[name].until = self.due = 0.0

    def _take_back(self, name: RequestId) -> Done:
        lease = self._leases[name]
        self._kept[lease.grant.model].remove(name)
        return self._give_back(lease)

    def _give_back(self, lease: _Lease[A]) -> Done:
        name = lease.grant.request
        del self._leases[name]
        outcome, served = lease.first or (Outcome.UNKNOWN, False)
        return Done(request=name, outcome=outcome, served=served, uses=tuple(lease.uses))


def _note(lease: _Lease[A], request: RequestId, outcome: str, *, served: bool) -> int | None:
    """Keep how a request under a lease ended; returns the hold that its client asked for, in ms."""
    ask = lease.ask
    if ask is None:
        lease.first = (outcome, served)
        return lease.holding.hold_ms
    lease.uses.append(
        Use(
            request=request,
            outcome=outcome,
            served=served,
            hold_ms=ask.hold_ms,
            conversation=ask.conversation,
            client=ask.client,
        )
    )
    return ask.hold_ms


def _granted_again(grant: Granted, ask: Ask) -> Granted:
    return Granted(
        request=ask.request,
        epoch=grant.epoch,
        model=grant.model,
        incarnation=grant.incarnation,
        upstream=grant.upstream,
        was_ready=True,
        waited_ms=0,
        host=grant.host,
    )


def _holding(ask: Ask, grant: Granted) -> Holding:
    return listening.Holding(
        request=grant.request,
        model=grant.model,
        incarnation=grant.incarnation,
        hold_ms=ask.hold_ms,
        conversation=ask.conversation,
        client=ask.client,
        waited_ms=grant.waited_ms,
        host=grant.host,
        routed=ask.routed,
    )
