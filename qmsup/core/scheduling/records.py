"""The records that the scheduler's state is made of: children, leases, swaps, models, listeners.

What may happen to them is told in the modules beside this one.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from qmsup.core.lifecycle.backoff import BackOff
from qmsup.core.scheduling.deadlines import Alarm
from qmsup.core.scheduling.holds import Conversation, Holds
from qmsup.core.scheduling.line import Waiter
from qmsup.core.scheduling.memory_events import SeenBy
from qmsup.core.scheduling.stock import Guard, Looking, Memo, Returning, Taking
from qmsup.ids import (
    AskId,
    Incarnation,
    LeaseId,
    ListenerName,
    ModelId,
    RequestId,
    WorkerId,
)
from qmsup.spec import GroupSpec, ModelSpec
from qmsup.units import MiB, Seconds


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
        since: when it was wanted, or became ready.
        born: when its process was spawned.
        context: tokens that one slot of it holds; None = it did not say.
        has_served: a request got an answer from it, or a job was done by it.
        peak: the most GPU memory it was seen to use.
        peak_seen_by: how that became known.
        ram: the most of the box's memory that it was seen to use.
    """

    incarnation: Incarnation
    spec: ModelSpec
    since: Seconds
    phase: Phase = Phase.STARTING
    pid: int | None = None
    port: int | None = None
    upstream: str = ""
    total_slots: int | None = None
    context: int | None = None
    has_served: bool = False
    peak: MiB = MiB(0)
    peak_seen_by: SeenBy = SeenBy.TELEMETRY
    ram: MiB = MiB(0)
    born: Seconds = Seconds(0.0)

    def slots_by(self, spec: ModelSpec) -> int:
        """How many requests it takes at once, if these were its arguments."""
        return self.total_slots if self.total_slots and spec.slots_from_child else spec.slots


@dataclass(slots=True, eq=False)
class Lease:
    """One use of a model, by a request or by a job. It counts in flight from the offer on.

    Attributes:
        listener: the worker of a request; None = a job's, which no listener's death ends.
        conversation: whose hold on the model it takes away, and who may get one when it ends.
        hold: how long that is to be, by the client's header; None = nothing was said.
        is_held: the listener accepted the offer; a job's lease always is.
        alarm: when an unanswered offer lapses, or a job's lease that is not renewed.
        owner, purpose: what a job said of itself.
    """

    id: LeaseId
    listener: WorkerId | None
    model: ModelId
    incarnation: Incarnation
    upstream: str
    was_ready: bool
    waited: Seconds
    conversation: Conversation
    hold: Seconds | None = None
    is_held: bool = False
    is_job: bool = False
    """It outlives requests, and may take hours."""
    alarm: Alarm | None = None
    owner: str = ""
    purpose: str = ""


class SwapPhase(StrEnum):
    """What a swap waits for."""

    EVICTING = "evicting"
    SETTLING = "settling"
    """What was stopped is gone, and its memory is on its way back."""
    RENDERING = "rendering"
    """A render has begun meanwhile, and nothing that is no render is spawned beside one."""
    LOOKING = "looking"
    """Whether there is room is read anew, as the last reading is not of this moment."""
    LOADING = "loading"


@dataclass(slots=True, eq=False)
class Swap:
    """Making room for a model and loading it.

    Attributes:
        touched: all that it loads or stops.
        left: members of `evict` that are not gone yet.
        victims: the children that stopped for it, whose memory it waits for.
        joiners: who waits for it, by rank once sorted; a swap without any may be aborted.
        incarnation: the start it asked for, once it is LOADING; only reports about that one end it.
        is_aborting: it will end without its target.
    """

    target: ModelId
    evict: tuple[ModelId, ...]
    started: Seconds
    touched: frozenset[ModelId] = field(init=False)
    left: set[ModelId] = field(default_factory=set)
    victims: frozenset[Incarnation] = frozenset()
    phase: SwapPhase = SwapPhase.EVICTING
    incarnation: Incarnation | None = None
    joiners: dict[Waiter, None] = field(default_factory=dict)
    is_aborting: bool = False

    def __post_init__(self) -> None:
        """What it touches stays the same."""
        self.touched = frozenset((self.target, *self.evict))

    @property
    def is_abandoned(self) -> bool:
        """Nobody waits for it."""
        return not self.joiners and not self.is_aborting

    def meets(self, target: ModelId, evict: Iterable[ModelId]) -> bool:
        """Whether another swap would touch what this one loads or stops."""
        return target in self.evict or not self.touched.isdisjoint(evict)


@dataclass(slots=True, eq=False)
class Model:
    """All that is known of one model.

    Attributes:
        spec: what its next start uses.
        child: its youngest incarnation, from the order to start on.
        leaving: older incarnations whose end has not been reported.
        leases: in flight, offered or held; the only answer to "is it busy".
        last_use: a counter, not a clock; 0 = never.
        idle_since: when it became ready, or its last lease ended.
        idle: when it will have been idle for long enough to be unloaded.
        is_draining: an unload waits for what is in flight.
        is_pinned: an operator wants it to stay once it is loaded.
        is_removed: the configuration names it no longer; it ends when it is idle.
        group: the group it was in when it was removed.
        load_time: how long its last load took.
        context: tokens that one slot of its last child held; None = not known of one with this configuration.
        memo: that it found no room on the GPU, for as long as that is remembered.
        holds: until when it is kept while it is idle; there is none without a ready child.
        hold_alarm: the end of the latest of them.
    """

    id: ModelId
    spec: ModelSpec
    child: Child | None = None
    leaving: set[Incarnation] = field(default_factory=set)
    swap: Swap | None = None
    leases: dict[LeaseId, Lease] = field(default_factory=dict)
    last_use: int = 0
    back_off: BackOff = field(default_factory=BackOff)
    idle_since: Seconds = Seconds(0.0)
    idle: Alarm | None = None
    is_draining: bool = False
    is_pinned: bool = False
    is_removed: bool = False
    group: GroupSpec | None = None
    load_time: Seconds | None = None
    context: int | None = None
    memo: Memo | None = None
    holds: Holds = field(default_factory=Holds)
    hold_alarm: Alarm | None = None
    since: Seconds = Seconds(0.0)

    @property
    def is_ready(self) -> bool:
        """A child answers requests and has not been told to stop."""
        return self.child is not None and self.child.phase is Phase.READY

    @property
    def is_up(self) -> bool:
        """A child starts or serves, and is not told to stop."""
        return self.child is not None and self.child.phase is not Phase.STOPPING

    @property
    def is_kept(self) -> bool:
        """An operator wants it to stay, and it is there or coming; a stop under way goes on."""
        is_coming = self.swap is not None and not self.swap.is_aborting
        return self.is_pinned and (self.is_up or is_coming)

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
    def has_long_job(self) -> bool:
        """It is in use by a job that is no render, whose end nobody can foresee."""
        return not self.running_spec.renders and any(lease.is_job for lease in self.leases.values())

    @property
    def limit(self) -> int:
        """How many requests it takes at once. A child that runs with older arguments takes no more for the new ones."""
        spec, child = self.spec, self.child
        assert child is not None, "nothing is asked of what does not run"
        own = child.slots_by(spec)
        started = child.spec
        if started is spec or (started.argv, started.env) == (spec.argv, spec.env):
            return own
        return min(own, child.slots_by(started))

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
        lends: it can keep leases that it is lent.
        silence: set while it is suspected; when it comes, what the worker had is given up.
    """

    worker: WorkerId
    name: ListenerName
    pid: int
    lends: bool = False
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
class Law:
    """Whether the configuration lets stand together what runs.

    Attributes:
        is_doubtful: another one came, and not all that has no place has stopped.
        alarm: the end of a hold that keeps such a model.
    """

    is_doubtful: bool = False
    alarm: Alarm | None = None


@dataclass(slots=True, eq=False)
class Missing:
    """Workers that have something in flight from a former life of the scheduler, and have not told of it yet.

    Attributes:
        alarm: when they are waited for no longer.
    """

    workers: set[WorkerId]
    alarm: Alarm | None = None


@dataclass(slots=True, eq=False)
class Ending:
    """The scheduler is shutting down.

    Attributes:
        is_over: leases have had their time.
        is_told: the process has been told to end.
        is_handing_over: the next scheduler goes on with all there is; nothing is done any more.
    """

    is_over: bool = False
    is_told: bool = False
    is_handing_over: bool = False


@dataclass(slots=True, eq=False)
class Places:
    """When the changed places in the line are told next, and were told last."""

    told: Seconds = Seconds(float("-inf"))
    alarm: Alarm | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Idle:
    """That a model has been idle for long enough."""

    model: Model


Due = (
    Idle
    | Law
    | Guard
    | Missing
    | Returning
    | Taking
    | Looking
    | Lease
    | Waiter
    | Listener
    | Model
    | Ending
    | Places
)
"""Whatever a deadline is about."""
