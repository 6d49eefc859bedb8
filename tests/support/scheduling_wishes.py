"""What operators, jobs and readings of the GPU add to a scheduler's history, and what must hold for them."""

from dataclasses import dataclass, field

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from qmsup.core.eviction.budget import BudgetPolicy
from qmsup.core.scheduling import memory
from qmsup.core.scheduling.effects import Effect, EnsureReady, Grant, ReadMemory, Record, Stop
from qmsup.core.scheduling.events import (
    DrainAsked,
    Event,
    LeaseRenewed,
    LeaseRequested,
    PinAsked,
    ReleaseAsked,
)
from qmsup.core.scheduling.memory_events import (
    CeilingChanged,
    FootprintMeasured,
    MemoryRead,
    MemoryReturned,
)
from qmsup.core.scheduling.scheduler import Scheduler
from qmsup.core.scheduling.state import State
from qmsup.ids import AskId, Incarnation, LeaseId, ModelId, RequestId
from qmsup.units import MiB, Seconds
from tests.support.scheduling_world import Process, World

MODELS = st.sampled_from([ModelId(m) for m in "abcd"])
RARELY = st.integers(min_value=0, max_value=7).map(lambda n: n == 7)
PICK = st.integers(min_value=0, max_value=1000)
_CARD = 24
_REAL = {"a": 6, "b": 5, "c": 4, "d": 10}


@dataclass(slots=True)
class Card:
    """A GPU as it is, and what was told of it last.

    Attributes:
        unreturned: what ended children have not given back.
        free: as told; None = nothing that can be trusted.
    """

    foreign: int = 0
    unreturned: dict[Incarnation, tuple[ModelId, int]] = field(default_factory=dict)
    free: int | None = None

    def held_by(self, process: Process) -> int:
        """What a child really holds: never quite what anybody said."""
        real = _REAL[process.model] + process.incarnation % 3 - 1
        return real if process.is_ready else real // 2

    def free_beside(self, world: World) -> int:
        """What is left."""
        held = sum(self.held_by(process) for process in world.processes.values())
        returning = sum(left for _, left in self.unreturned.values())
        return max(0, _CARD - self.foreign - held - returning)


class Wishes(RuleBasedStateMachine):
    """The rules beside those of requests and processes."""

    now: float
    names: int
    world: World
    scheduler: Scheduler

    def __init__(self) -> None:
        super().__init__()
        self.card = Card()
        self.is_measured = False

    def tell(self, event: Event, *, repeated: RequestId | None = None) -> list[Effect]:
        raise NotImplementedError

    @property
    def is_handed_over(self) -> bool:
        """Whether it is the next scheduler's to answer whoever waits, and to do whatever is asked."""
        ending = self.scheduler.state.ending
        return ending is not None and ending.is_handing_over

    def an_ask(self, letter: str) -> AskId:
        self.names += 1
        return AskId(f"{letter}{self.names}")

    @rule(model=MODELS, ttl=st.sampled_from([2, 30]))
    def take_a_lease(self, model: ModelId, ttl: int) -> None:
        ask = self.an_ask("j")
        lease = LeaseId(f"lease-{ask}")
        self.world.jobs[lease] = None
        self.tell(LeaseRequested(ask=ask, lease=lease, model=model, ttl=Seconds(ttl)))

    @rule(pick=PICK, ttl=st.sampled_from([2, 30]))
    def renew_a_lease(self, pick: int, ttl: int) -> None:
        if self.world.jobs:
            lease = list(self.world.jobs)[pick % len(self.world.jobs)]
            self.tell(LeaseRenewed(ask=self.an_ask("n"), lease=lease, ttl=Seconds(ttl)))

    @rule(pick=PICK)
    def release_a_lease(self, pick: int) -> None:
        if self.world.jobs:
            lease = list(self.world.jobs)[pick % len(self.world.jobs)]
            self.tell(ReleaseAsked(ask=self.an_ask("e"), lease=lease))
            is_over = lease not in self.scheduler.state.leases
            assert is_over or self.is_handed_over, "what is released is over"

    @rule(model=MODELS, is_pinned=st.booleans(), is_so=RARELY)
    def pin(self, model: ModelId, is_pinned: bool, is_so: bool) -> None:
        if is_so:
            self.tell(PinAsked(ask=self.an_ask("p"), model=model, is_pinned=is_pinned))

    @rule(is_draining=st.booleans(), is_so=RARELY)
    def drain_the_box(self, is_draining: bool, is_so: bool) -> None:
        if is_so:
            self.tell(DrainAsked(ask=self.an_ask("d"), is_draining=is_draining))

    @rule(
        foreign=st.sampled_from([0, 0, 3, 12]),
        has_ceiling=st.booleans(),
        line=st.sampled_from([None, None, 0, 5]),
    )
    def read_the_card(self, foreign: int, has_ceiling: bool, line: int | None = None) -> None:
        self.card.foreign = foreign
        self.card.free = self.card.free_beside(self.world)
        held = {p.incarnation: MiB(self.card.held_by(p)) for p in self.world.processes.values()}
        ceiling = MiB(_CARD - foreign) if has_ceiling else None
        self.tell(
            CeilingChanged(
                ceiling=ceiling,
                free=MiB(self.card.free),
                held=held,
                shed_line=None if line is None else MiB(line),
            )
        )

    @rule()
    def read_what_was_asked_for(self) -> None:
        if self.scheduler.state.memory.looking is not None:
            self.tell(MemoryRead())

    @rule(is_so=RARELY)
    def lose_sight_of_the_card(self, is_so: bool) -> None:
        if is_so:
            self.card.free = None
            self.tell(CeilingChanged())

    @rule(pick=PICK, is_whole=st.booleans())
    def give_memory_back(self, pick: int, is_whole: bool) -> None:
        card = self.card
        if not card.unreturned or card.free is None:
            return
        incarnation = list(card.unreturned)[pick % len(card.unreturned)]
        model, left = card.unreturned.pop(incarnation)
        if not is_whole and left > 1:
            card.unreturned[incarnation] = (model, left // 2)
            left -= left // 2
        card.free += left
        was = self.scheduler.state.memory.returning.get(incarnation)
        self.tell(
            MemoryReturned(
                model=model,
                incarnation=incarnation,
                returned=MiB(left + (was.returned if was is not None else 0)),
                free=MiB(card.free),
            )
        )

    @rule(pick=PICK, is_so=RARELY)
    def measure(self, pick: int, is_so: bool) -> None:
        processes = [p for p in self.world.processes.values() if p.is_ready]
        if not (processes and is_so):
            return
        self.is_measured = True
        process = processes[pick % len(processes)]
        self.tell(
            FootprintMeasured(
                model=process.model,
                argv=("child",),
                peak=MiB(self.card.held_by(process)),
                incarnation=process.incarnation,
            )
        )

    def end_process(self, process: Process) -> None:
        """Its owner reports the end; its memory comes back when it likes to."""
        self.card.unreturned[process.incarnation] = (process.model, self.card.held_by(process))
        self.world.end(process)

    def check_wishes(self, effects: list[Effect]) -> None:
        """After each event."""
        state = self.scheduler.state
        started = [e for e in effects if isinstance(e, Record) and e.decision == "swap.started"]
        for record in started:
            told = effects[effects.index(record) :]
            stops = [e.model for e in told if isinstance(e, Stop) and e.model in record.evicts]
            pinned = [m for m in stops if state.models[m].is_pinned]
            assert not pinned, f"{pinned} stops for {record.model}, and is pinned"
        if started and isinstance(state.policy, BudgetPolicy):
            _check_fit(state, state.policy, started[-1])
        for effect in effects:
            if isinstance(effect, EnsureReady) and self.card.free is not None:
                child = state.models[effect.model].child
                size = 0 if child is None else memory.size_of(state, child.spec)
                assert size <= self.card.free, "what is started finds room"
                age = self.now - state.memory.read_at
                # One that did not come in time may be asked for again at once, by somebody else.
                asks = any(isinstance(other, ReadMemory) for other in effects)
                assert (
                    not size or age <= memory.FRESH_FOR or asks or state.memory.looking is None
                ), "what is started finds it by a reading of this moment, or none came in time"
            if isinstance(effect, EnsureReady | Grant) and state.is_draining:
                assert effect.cause != state.event or self.is_repeated(effect), (
                    "a box that is drained takes no work"
                )

    def is_repeated(self, effect: EnsureReady | Grant) -> bool:
        """Whether it is an offer that was made before, and asked for again."""
        if isinstance(effect, EnsureReady):
            return False
        asked = self.world.requests[effect.request]
        return asked.grant is not None and asked.grant.incarnation == effect.incarnation


def _check_fit(state: State, policy: BudgetPolicy, record: Record) -> None:
    """What a budget admits fits the ceiling known then, or everything that may go has to."""
    target = record.model
    assert target is not None
    need = policy.needs.get(target, 0)
    stays = [m for m in state.running_beside(target) if m not in record.evicts]
    total = need + sum(policy.charge_of(model) for model in stays)
    if need and set(stays) - policy.persistent:
        assert total <= policy.limit, f"{target} is admitted: {total} of {policy.limit}"
