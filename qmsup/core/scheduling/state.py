"""What the scheduler knows. Plain records; what may happen to them is in the modules beside this one.

`State` also carries what belongs to the event in hand: the time, the event's number and the effects so far. So a
function takes the state, changes it, and leaves its orders there.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from qmsup.core.eviction.policy import EvictionPolicy, policy_for
from qmsup.core.lifecycle.backoff import BackOff
from qmsup.core.scheduling.deadlines import Alarm, Deadlines
from qmsup.core.scheduling.effects import Answer, Effect, Record
from qmsup.core.scheduling.line import Line, Waiter
from qmsup.errors import Refusal
from qmsup.ids import (
    AskId,
    EventNumber,
    Incarnation,
    LeaseId,
    ListenerName,
    ModelId,
    RequestId,
    WorkerId,
)
from qmsup.spec import GroupSpec, ModelSpec, Spec
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


class Phase(StrEnum):
    """Where a child is in its life."""

    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"
    """A Stop or AbortStart is outstanding. Whatever else is heard of the child changes nothing."""


@dataclass(slots=True, eq=False)
class Child:
    """One start of a model's process.

    Attributes:
        spec: what it was started with; a reload changes the next start only.
        has_served: a request got an answer from it.
    """

    incarnation: Incarnation
    spec: ModelSpec
    since: Seconds
    phase: Phase = Phase.STARTING
    pid: int | None = None
    port: int | None = None
    upstream: str = ""
    total_slots: int | None = None
    has_served: bool = False


@dataclass(slots=True, eq=False)
class Lease:
    """One use of a model by a request. It counts in flight from the offer on.

    Attributes:
        is_held: the listener accepted the offer.
        alarm: when an unanswered offer lapses.
    """

    id: LeaseId
    listener: WorkerId
    model: ModelId
    incarnation: Incarnation
    upstream: str
    was_ready: bool
    waited: Seconds
    is_held: bool = False
    alarm: Alarm | None = None


class SwapPhase(StrEnum):
    """What a swap waits for."""

    EVICTING = "evicting"
    LOADING = "loading"


@dataclass(slots=True, eq=False)
class Swap:
    """Making room for a model and loading it.

    Attributes:
        left: members of `evict` that are not gone yet.
        joiners: who waits for it, by rank once sorted; a swap without any may be aborted.
        incarnation: the start it asked for, once it is LOADING; only reports about that one end it.
        is_aborting: it will end without its target.
    """

    target: ModelId
    evict: tuple[ModelId, ...]
    started: Seconds
    left: set[ModelId] = field(default_factory=set)
    phase: SwapPhase = SwapPhase.EVICTING
    incarnation: Incarnation | None = None
    joiners: dict[Waiter, None] = field(default_factory=dict)
    is_aborting: bool = False

    @property
    def is_abandoned(self) -> bool:
        """Nobody waits for it."""
        return not self.joiners and not self.is_aborting

    def meets(self, target: ModelId, evict: Iterable[ModelId]) -> bool:
        """Whether another swap would touch what this one loads or stops."""
        own = self.evict
        return target in own or any(model == self.target or model in own for model in evict)


@dataclass(slots=True, eq=False)
class Model:
    """All that is known of one model.

    Attributes:
        spec: what its next start uses.
        child: its youngest incarnation, from the order to start on.
        leaving: older incarnations whose end has not been reported.
        leases: in flight, offered or held; the only answer to "is it busy".
        last_use: a counter, not a clock; 0 = never.
        is_draining: an unload waits for what is in flight.
        is_removed: the configuration names it no longer; it ends when it is idle.
        group: the group it was in when it was removed.
        load_time: how long its last load took.
    """

    id: ModelId
    spec: ModelSpec
    child: Child | None = None
    leaving: set[Incarnation] = field(default_factory=set)
    swap: Swap | None = None
    leases: dict[LeaseId, Lease] = field(default_factory=dict)
    last_use: int = 0
    back_off: BackOff = field(default_factory=BackOff)
    is_draining: bool = False
    is_removed: bool = False
    group: GroupSpec | None = None
    load_time: Seconds | None = None
    since: Seconds = Seconds(0.0)

    @property
    def is_ready(self) -> bool:
        """A child answers requests and has not been told to stop."""
        return self.child is not None and self.child.phase is Phase.READY

    @property
    def is_gone(self) -> bool:
        """No process of it is left."""
        return self.child is None and not self.leaving

    @property
    def incarnations(self) -> set[Incarnation]:
        """The starts whose end has not been reported."""
        return self.leaving | ({self.child.incarnation} if self.child is not None else set())

    @property
    def is_idle_and_gone(self) -> bool:
        """Nothing is left of it: no process, no swap, no lease."""
        return self.is_gone and self.swap is None and not self.leases

    @property
    def running_spec(self) -> ModelSpec:
        """What its child was started with; without one, what the next start uses."""
        return self.spec if self.child is None else self.child.spec

    @property
    def is_closing(self) -> bool:
        """It takes no new requests and stops when it is idle."""
        return self.is_draining or self.is_removed

    @property
    def limit(self) -> int:
        """How many requests it takes at once."""
        child = self.child
        if child is not None and child.total_slots and self.spec.slots_from_child:
            return child.total_slots
        return self.spec.slots

    @property
    def coldness(self) -> tuple[int, bool, int, ModelId]:
        """The order in which models make room: stopping, then idle, then busy; the least recently used first."""
        if self.leases:
            return (2, not self.is_removed, self.last_use, self.id)
        is_stopping = self.swap is None and (
            self.child is None or self.child.phase is Phase.STOPPING
        )
        return (0 if is_stopping else 1, True, self.last_use, self.id)


@dataclass(slots=True, eq=False)
class Listener:
    """One worker process of a listener, and what it has here.

    Attributes:
        silence: set while it is suspected; when it comes, what the worker had is given up.
    """

    worker: WorkerId
    name: ListenerName
    pid: int
    leases: dict[LeaseId, Lease] = field(default_factory=dict)
    waiters: dict[RequestId, Waiter] = field(default_factory=dict)
    silence: Alarm | None = None


@dataclass(slots=True, eq=False)
class Unload:
    """A control client waits for models to be gone.

    Attributes:
        awaits: incarnations whose end has not been reported.
    """

    ask: AskId
    awaits: set[Incarnation] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class Ending:
    """The scheduler is shutting down.

    Attributes:
        is_over: leases have had their time.
        is_told: the process has been told to end.
    """

    is_over: bool = False
    is_told: bool = False


@dataclass(slots=True, eq=False)
class Places:
    """When the changed places in the line are told next, and were told last."""

    told: Seconds = Seconds(float("-inf"))
    alarm: Alarm | None = None


Due = Lease | Waiter | Listener | Model | Ending | Places
"""Whatever a deadline is about."""


class State:
    """Everything the scheduler decides by, and the turn in hand.

    Attributes:
        waiters: every request that waits, in the line or for a swap.
        asks: every control client's question without an answer.
        refused, answered, lapsed, lost: the last few, for those who ask again or answer late.
        stirred: models whose waiters may fare otherwise than when last judged.
        is_stirred: so may everybody's.
    """

    def __init__(self, spec: Spec, first_incarnation: Incarnation) -> None:
        self.spec = spec
        self.first_incarnation = first_incarnation
        self.next_incarnation = first_incarnation
        self.models = {model.id: Model(model.id, model) for model in spec.models.values()}
        self.policy: EvictionPolicy = policy_for(spec)
        self.swaps: dict[ModelId, Swap] = {}
        self.line = Line(spec.scheduler.priority)
        self.waiters: dict[RequestId, Waiter] = {}
        self.asks: dict[AskId, Waiter | Unload] = {}
        self.leases: dict[LeaseId, Lease] = {}
        self.listeners: dict[WorkerId, Listener] = {}
        self.deadlines: Deadlines[Due] = Deadlines()
        self.refused: Recent[RequestId, Refusal] = Recent()
        self.answered: Recent[AskId, Answer] = Recent()
        self.lapsed: Recent[LeaseId, Lease] = Recent()
        self.lost: Recent[WorkerId, None] = Recent()
        self.places = Places()
        self.ending: Ending | None = None
        self.uses = 0
        self.arrivals = 0

        self.now = Seconds(0.0)
        self.event = EventNumber(0)
        self.effects: list[Effect] = []
        self.stirred: set[ModelId] = set()
        self.is_stirred = False
        self._running: tuple[ModelId, ...] | None = None
        self._residents: dict[ModelId, Model] = {}

    @property
    def residents(self) -> Iterable[Model]:
        """Models with a process, and targets of swaps."""
        return self._residents.values()

    def begin(self, now: Seconds) -> None:
        """A new event is in hand."""
        self.now = now
        self.event = EventNumber(self.event + 1)
        self.effects = []

    def emit(self, effect: Effect) -> None:
        """Order something."""
        self.effects.append(effect)

    def record(
        self,
        decision: str,
        *,
        model: ModelId | None = None,
        request: RequestId | None = None,
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

    def touch(self, model: Model) -> None:
        """A model was used: it is the hottest from now on."""
        self.uses += 1
        model.last_use = self.uses
        self._running = None

    def reorder(self) -> None:
        """A model became busy or idle: it stands elsewhere in the order of eviction."""
        self._running = None

    def settle(self, model: Model) -> None:
        """A model's processes or swap changed: it may have become resident, or stopped being so."""
        self._running = None
        if model.is_gone and model.swap is None:
            self._residents.pop(model.id, None)
        else:
            self._residents[model.id] = model

    def running_beside(self, target: ModelId) -> tuple[ModelId, ...]:
        """What is resident beside the target, coldest first."""
        if self._running is None:
            by_coldness = sorted(self._residents.values(), key=_coldness)
            self._running = tuple(model.id for model in by_coldness)
        if target in self._residents:
            return tuple(model for model in self._running if model != target)
        return self._running


def _coldness(model: Model) -> tuple[int, bool, int, ModelId]:
    return model.coldness
