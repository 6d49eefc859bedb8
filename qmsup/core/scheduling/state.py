"""What the scheduler knows, and the turn in hand.

`State` also carries what belongs to the event in hand: the time, the event's number and the effects so far. So a
function takes the state, changes it, and leaves its orders there.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from qmsup.core.eviction.alike import Alike
from qmsup.core.eviction.policy import EvictionPolicy, policy_for
from qmsup.core.scheduling.claims import Closer, Closers
from qmsup.core.scheduling.deadlines import Deadlines
from qmsup.core.scheduling.effects import Answer, Effect, Record
from qmsup.core.scheduling.holds import Conversation
from qmsup.core.scheduling.line import Line, Waiter
from qmsup.core.scheduling.records import (
    Due,
    Ending,
    Law,
    Lease,
    Listener,
    Missing,
    Model,
    Places,
    Swap,
    Unload,
)
from qmsup.core.scheduling.stock import Guard, Memory
from qmsup.errors import Refusal
from qmsup.ids import (
    AskId,
    EventNumber,
    Incarnation,
    LeaseId,
    ModelId,
    RequestId,
    WorkerId,
)
from qmsup.spec import Spec
from qmsup.units import Seconds

K = TypeVar("K")
V = TypeVar("V")

_REMEMBERED = 4096
"""Answers kept for those who ask again: a lost message is repeated within seconds."""


class Recent(OrderedDict[K, V], Generic[K, V]):
    """The last few things, for those who ask twice."""

    def keep(self, key: K, value: V) -> None:
        """Remember one thing more; the oldest is forgotten when there are too many."""
        self[key] = value
        self.move_to_end(key)
        if len(self) > _REMEMBERED:
            self.popitem(last=False)


class State:
    """Everything the scheduler decides by, and the turn in hand.

    Attributes:
        waiters: every request that waits, in the line or for a swap.
        asks: every control client's question without an answer.
        deadlines: what happens by itself when time passes.
        turns: ends of patience and of holds, which matter only to who waits in the line.
        refused, answered, lapsed, ended_jobs, lost: the last few, for those who ask again or answer late.
        is_draining: this box takes no more work.
        missing: workers of which it is not known yet what they have in flight; None = all is known.
        stirred: models whose waiters may fare otherwise than when last judged, and nobody else.
        is_stirred: everybody may.
        lent_to: workers that may keep leases of theirs for a moment after their work.
        closers: whom others wait for, since it has waited long enough.
        told_closers: those of whom an operator has been told.
        seen_order: what was resident, coldest first, when everybody was last looked at, or since then, where for
            nobody others would have to stop; None = nothing is known of that.
        is_reordered: models changed places in the order of eviction, so others may have to stop for who waits.
    """

    def __init__(self, spec: Spec, first_incarnation: Incarnation) -> None:
        self.spec = spec
        self.first_incarnation = first_incarnation
        self.next_incarnation = first_incarnation
        self.models = {model.id: Model(model.id, model) for model in spec.models.values()}
        self.swaps: dict[ModelId, Swap] = {}
        self.line = Line(spec.scheduler.priority)
        self.waiters: dict[RequestId, Waiter] = {}
        self.asks: dict[AskId, Waiter | Unload] = {}
        self.leases: dict[LeaseId, Lease] = {}
        self.listeners: dict[WorkerId, Listener] = {}
        self.deadlines: Deadlines[Due] = Deadlines()
        self.turns: Deadlines[Waiter | Model] = Deadlines()
        self.refused: Recent[RequestId, Refusal] = Recent()
        self.answered: Recent[AskId, Answer] = Recent()
        self.lapsed: Recent[LeaseId, Lease] = Recent()
        self.ended_jobs: Recent[LeaseId, str] = Recent()
        self.lost: Recent[WorkerId, None] = Recent()
        self.lent_to: dict[WorkerId, None] = {}
        self.memory = Memory()
        self.law = Law()
        self.guard = Guard()
        self.places = Places()
        self.ending: Ending | None = None
        self.missing: Missing | None = None
        self.is_draining = False
        self.uses = self.arrivals = 0

        self.now = Seconds(0.0)
        self.event = EventNumber(0)
        self.effects: list[Effect] = []
        self.stirred: set[ModelId] = set()
        self.is_stirred = False
        self.closers = Closers()
        self.told_closers: tuple[Closer, ...] = ()
        self.is_reordered = False
        self.seen_order: tuple[ModelId, ...] | None = None
        self._evictions: dict[ModelId, tuple[ModelId, ...]] = {}
        self.policy = policy_for(spec)
        self._running: tuple[ModelId, ...] | None = None
        self._rendering: tuple[ModelId, ...] | None = None
        self._residents: dict[ModelId, Model] = {}

    @property
    def residents(self) -> Iterable[Model]:
        """Models with a process, and targets of swaps."""
        return self._residents.values()

    @property
    def policy(self) -> EvictionPolicy:
        """What has to stop for what."""
        return self._policy

    @policy.setter
    def policy(self, policy: EvictionPolicy) -> None:
        self._policy = policy
        self._alike = Alike(policy)
        self._evictions = {}
        self.is_reordered = True
        self.seen_order = None

    def begin(self, now: Seconds) -> None:
        """A new event is in hand."""
        self.now = now
        self.event = EventNumber(self.event + 1)
        self.effects = []

    @property
    def wake(self) -> Seconds | None:
        """The earliest of all deadlines; with an empty line none of them is of a hold or a patience."""
        earliest = self.deadlines.earliest()
        turn = self.turns.earliest() if self.line.size else None
        return earliest if turn is None or (earliest is not None and earliest <= turn) else turn

    @property
    def rendering(self) -> tuple[ModelId, ...]:
        """Models that make images or videos now: nothing but their like is loaded beside them."""
        if self._rendering is None:
            self._rendering = tuple(
                model.id
                for model in self._residents.values()
                if model.leases and model.running_spec.renders
            )
        return self._rendering

    def emit(self, effect: Effect) -> None:
        """Order something."""
        self.effects.append(effect)

    def record(
        self,
        decision: str,
        *,
        model: ModelId | None = None,
        request: RequestId | None = None,
        lease: LeaseId | None = None,
        evicts: tuple[ModelId, ...] = (),
        because: str = "",
    ) -> None:
        """Tell an operator what was decided."""
        self.effects.append(
            Record(
                cause=self.event,
                decision=decision,
                model=model,
                request=request,
                lease=lease,
                evicts=evicts,
                because=because,
            )
        )

    def answer(self, ask: AskId, text: str = "", refusal: Refusal | None = None) -> None:
        """Answer a control client, now and whenever it asks again."""
        answer = Answer(cause=self.event, ask=ask, text=text, refusal=refusal)
        self.answered.keep(ask, answer)
        self.effects.append(answer)

    def is_repeated(self, ask: AskId) -> bool:
        """Whether a control client asked this before; it then gets its answer again, if there is one yet."""
        if (answer := self.answered.get(ask)) is not None:
            self.answer(ask, answer.text, answer.refusal)
            return True
        return ask in self.asks

    def stir(self, model: ModelId) -> None:
        """Waiters for this model may fare otherwise now; others' fate has not changed."""
        self.stirred.add(model)

    def stir_all(self) -> None:
        """Something ended, so anybody may fare otherwise now."""
        self.is_stirred = True

    def calm(self) -> None:
        """Everybody who was stirred is looked at now, and who holds back others is named anew."""
        self.is_stirred = False
        self.is_reordered = False
        self.seen_order = None
        if self.stirred:
            self.stirred.clear()
        if self.closers.named:
            self.closers = Closers()

    def touch(self, model: Model) -> None:
        """A model was used: it is the hottest from now on."""
        self.uses += 1
        model.last_use = self.uses
        self._forget_order()

    def reorder(self) -> None:
        """A model became busy or idle: it stands elsewhere in the order of eviction."""
        self._forget_order()

    def hold(self, model: Model, conversation: Conversation, until: Seconds) -> None:
        """Keep a model while it is idle, in case the conversation comes back."""
        model.holds.keep(conversation, until, self.now)
        self._await_end_of_hold(model)

    def drop_hold(self, model: Model, conversation: Conversation) -> None:
        """A conversation came back: its next lease decides about the next hold."""
        if model.holds:
            model.holds.drop(conversation)
            self._await_end_of_hold(model)

    def drop_holds(self, model: Model) -> None:
        """A model stops: there is nothing left to hold. Whoever stops one stirs the line."""
        if model.holds:
            model.holds.clear()
            self._await_end_of_hold(model)

    def settle(self, model: Model) -> None:
        """A model's processes or swap changed: it may have become resident, or stopped being so."""
        self._forget_order()
        if model.is_gone and model.swap is None:
            self._residents.pop(model.id, None)
        else:
            self._residents[model.id] = model

    def by_coldness(self) -> tuple[ModelId, ...]:
        """What is resident, coldest first, looked up anew."""
        return tuple(model.id for model in sorted(self._residents.values(), key=_coldness))

    @property
    def running(self) -> tuple[ModelId, ...]:
        """What is resident, coldest first."""
        if self._running is None:
            self._running = self.by_coldness()
        return self._running

    def running_beside(self, target: ModelId) -> tuple[ModelId, ...]:
        """What is resident beside the target, coldest first."""
        if target in self._residents:
            return tuple(model for model in self.running if model != target)
        return self.running

    def eviction_for(self, target: ModelId) -> tuple[ModelId, ...]:
        """What the policy would stop for the target, now; asked once for as long as nothing changes."""
        evict = self._evictions.get(target)
        if evict is None:
            evict = self._evictions[target] = self._ask_policy(target)
        return evict

    def kind_of(self, target: ModelId) -> Hashable:
        """What the policy tells it by: those of one kind are answered alike, whatever runs beside them."""
        return target if target in self._residents else (self._alike.likeness_of(target),)

    def _ask_policy(self, target: ModelId) -> tuple[ModelId, ...]:
        if target in self._residents:
            return self.policy.eviction_for(target, self.running_beside(target))
        return self._alike.eviction_for(target, self.running)

    def _forget_order(self) -> None:
        self.is_reordered = True
        if self._evictions:
            self._evictions = {}
        self._running = None
        self._rendering = None

    def _await_end_of_hold(self, model: Model) -> None:
        until, alarm = model.holds.until, model.hold_alarm
        if alarm is not None and alarm.is_live and alarm.at == until:
            return
        self.turns.cancel(alarm)
        model.hold_alarm = self.turns.add(until, model) if until > self.now else None


def _coldness(model: Model) -> tuple[int, bool, int, ModelId]:
    return model.coldness
