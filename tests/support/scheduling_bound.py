"""The bound on waiting, watched from outside: a closer waits for what was in its way when it became one, and no more.

Its obstacles are the leases then in flight on what it closes and the swaps then running, whether they meet it or not:
what they load may turn out to be what it has to stop. They may only end. When one of those swaps ends, what is then in
flight on what it closes is added; and so is what is granted to, or begun for, somebody before it in the line. So its
time in the line is at most its patience, those swaps, the longest lease in flight on what it closes when the last of
them has ended, and the closers ahead of it. Where programs that size themselves start one after the other, "then" is
when nothing but swaps under way is in its way any more: until that, others may start.
"""

from dataclasses import dataclass, field
from functools import partial

from qmsup.core.scheduling import memory
from qmsup.core.scheduling.claims import Closer
from qmsup.core.scheduling.collisions import start_apart
from qmsup.core.scheduling.events import ConfigApplied, DrainAsked, Event, PinAsked, UnloadAsked
from qmsup.core.scheduling.line import Rank
from qmsup.core.scheduling.memory_events import CeilingChanged, FootprintMeasured, MemoryReturned
from qmsup.core.scheduling.records import Lease, Swap
from qmsup.core.scheduling.state import State
from qmsup.ids import LeaseId, ModelId, RequestId

_FROM_OUTSIDE = (
    ConfigApplied,
    UnloadAsked,
    PinAsked,
    DrainAsked,
    CeilingChanged,
    MemoryReturned,
    FootprintMeasured,
)
"""After these, what is in the way may be something else: the books are opened anew."""


@dataclass(slots=True)
class Watch:
    """One closer and what is in its way."""

    leases: set[LeaseId]
    swaps: set[Swap]
    collides: bool = False


@dataclass(slots=True)
class Bound:
    """Books over closers."""

    watches: dict[tuple[ModelId, Rank], Watch] = field(default_factory=dict)
    ranks: dict[RequestId, Rank] = field(default_factory=dict)
    leases: set[LeaseId] = field(default_factory=set)
    swaps: set[Swap] = field(default_factory=set)
    longest: int = 0

    def look(self, state: State, event: Event) -> None:
        """After each event."""
        if isinstance(event, _FROM_OUTSIDE):
            self.watches.clear()
        granted = [lease for lease in state.leases.values() if lease.id not in self.leases]
        begun = [swap for swap in state.swaps.values() if swap not in self.swaps]
        ended = self.swaps - set(state.swaps.values())
        named = {(closer.case.model, closer.rank): closer for closer in state.closers.named}
        for key, closer in named.items():
            watch = self.watches.get(key)
            if watch is None:
                self.watches[key] = self._opened(state, closer)
            else:
                self._add(state, watch, closer, granted, begun, ended)
            self._check(state, closer, self.watches[key])
            self.watches[key].collides = closer.collides
        self.watches = {key: watch for key, watch in self.watches.items() if key in named}
        self.longest = max(self.longest, len(self.watches))
        self._remember(state)

    def _opened(self, state: State, closer: Closer) -> Watch:
        return Watch(leases=self._shut(state, closer), swaps=set(state.swaps.values()))

    def _shut(self, state: State, closer: Closer) -> set[LeaseId]:
        """What is in flight on what it closes, and on its own model, where that is to stop first."""
        target = state.models[closer.case.model]
        locks_out = () if target.spec.renders else state.rendering
        shut = {*closer.evict, *locks_out, target.id}
        return {lease.id for lease in state.leases.values() if lease.model in shut}

    def _add(
        self,
        state: State,
        watch: Watch,
        closer: Closer,
        granted: list[Lease],
        begun: list[Swap],
        ended: set[Swap],
    ) -> None:
        is_ahead = any(waiter.rank < closer.rank for swap in begun for waiter in swap.joiners)
        if (watch.swaps & ended) or is_ahead or any(map(partial(self._is_fair, closer), granted)):
            watch.leases |= self._shut(state, closer)
            watch.swaps |= {swap for swap in begun if is_ahead}
        if not watch.collides:
            target = state.models[closer.case.model]
            watch.swaps |= {s for s in begun if start_apart(state, target, state.models[s.target])}

    def _is_fair(self, closer: Closer, lease: Lease) -> bool:
        """Whether a new lease was ahead of a closer, or in flight all along: revived, told again, a request's job."""
        rank = self.ranks.get(RequestId(lease.id))
        return lease.is_held if rank is None else rank < closer.rank

    def _check(self, state: State, closer: Closer, watch: Watch) -> None:
        target = state.models[closer.case.model]
        if memory.lack_before(state, target, closer.evict) is not None:
            return  # it waits for what others have yet to take, and is refused if that is too much
        live = watch.leases & set(state.leases) or watch.swaps & set(state.swaps.values())
        assert live, f"what was in the way of {closer} has ended, and still it waits"

    def _remember(self, state: State) -> None:
        self.ranks = {request: waiter.rank for request, waiter in state.waiters.items()}
        self.leases = set(state.leases)
        self.swaps = set(state.swaps.values())
