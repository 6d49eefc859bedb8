"""What people and programs are shown of the state: frozen, in plain words, made on demand."""

from dataclasses import dataclass
from enum import StrEnum

from qmsup.core.scheduling import memory
from qmsup.core.scheduling.deadlines import Alarm
from qmsup.core.scheduling.line import Because
from qmsup.core.scheduling.obstacles import obstacle
from qmsup.core.scheduling.records import Model
from qmsup.core.scheduling.state import State
from qmsup.ids import Incarnation, LeaseId, ListenerName, ModelId, RequestId, WorkerId
from qmsup.spec import Spec
from qmsup.units import MiB, Seconds


class ModelState(StrEnum):
    """A model's state in the words of `/running`."""

    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"
    FAILED = "failed"
    """Its last start failed; a request tries again once the back-off is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelView:
    """One model.

    Attributes:
        upstream: `host:port`, "" while not ready.
        in_flight: leases, offered or held.
        queued: requests and loads that wait for it, in the line or for its swap.
        since: how long it has been in this state.
        age: of its child's process; None = none was spawned yet.
        closing: why it takes no new requests though it is ready: it is unloaded once it is idle (`unload`), the
            configuration has it no longer (`removed`), or somebody who has waited for long enough is to have its
            place (`line`); "" = it takes them.
        est_vram: what it is charged, as measured or else estimated; 0 = unknown.
        estimated: what the operator says it takes on the GPU; 0 = nothing was said.
        measured: what such starts were measured to take there; None = none has been.
        peak: the most that its child was seen to use there; None = it was not.
        ram: the most that its child was seen to use of the box's memory; None = it was not.
        ttl_left: until it is unloaded because nobody uses it; None = that is not to be.
        hold_left: how long it is kept for somebody who is likely to come back; None = it is not.
        is_pinned: an operator wants it to stay.
        last_error: why it failed, "" when it did not.
    """

    id: ModelId
    state: ModelState
    pid: int | None
    port: int | None
    upstream: str
    incarnation: Incarnation | None
    in_flight: int
    queued: int
    since: Seconds
    age: Seconds | None
    closing: str
    est_vram: MiB
    estimated: MiB
    measured: MiB | None
    peak: MiB | None
    ram: MiB | None
    ttl_left: Seconds | None
    hold_left: Seconds | None
    is_pinned: bool
    last_error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceView:
    """One place in the line.

    Attributes:
        request: None for a control client's load.
        patience_left: how much longer it respects holds and busy models; 0 = not any more.
        because: why the first of its like waits.
        behind: the models that keep that one waiting.
    """

    request: RequestId | None
    model: ModelId
    place: int
    waited: Seconds
    patience_left: Seconds
    because: Because
    behind: tuple[ModelId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerView:
    """One worker process of a listener.

    Attributes:
        waiting: requests in the line or waiting for a swap.
        held: leases, offered or held.
        is_silent: suspected: nothing is granted to it.
    """

    worker: WorkerId
    name: ListenerName
    pid: int
    waiting: int
    held: int
    is_silent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseView:
    """One use of a model.

    Attributes:
        owner: of a job as it said, of a request the worker that relays it.
        ttl_left: until it expires, unless renewed; None = it ends with its response.
    """

    id: LeaseId
    model: ModelId
    is_job: bool
    is_held: bool
    owner: str
    purpose: str
    ttl_left: Seconds | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What a worker has, in two numbers that both sides can count.

    Attributes:
        waiting: requests without a grant that the worker took up.
        held: leases in use.
    """

    waiting: int
    held: int


def models(state: State, spec: Spec, now: Seconds) -> tuple[ModelView, ...]:
    """Every model of the configuration, in its order; then those that only still run."""
    named = [state.models[model] for model in spec.models if model in state.models]
    others = [model for model in state.models.values() if model.id not in spec.models]
    return tuple(_model(state, model, now) for model in (*named, *others))


def line(state: State, now: Seconds) -> tuple[PlaceView, ...]:
    """The whole line, first to last."""
    obstacles = {
        case: obstacle(state, case, group.waiters[0].rank)
        for case, group in state.line.groups.items()
    }
    return tuple(
        PlaceView(
            request=waiter.request,
            model=waiter.case.model,
            place=place,
            waited=Seconds(now - waiter.rank.arrived),
            patience_left=Seconds(max(0.0, waiter.impatient - now)),
            because=obstacles[waiter.case].because,
            behind=obstacles[waiter.case].models,
        )
        for place, waiter in enumerate(state.line.in_order(), 1)
    )


def listeners(state: State) -> tuple[ListenerView, ...]:
    """Every worker process that greeted."""
    return tuple(
        ListenerView(
            worker=listener.worker,
            name=listener.name,
            pid=listener.pid,
            waiting=len(listener.waiters),
            held=len(listener.leases),
            is_silent=listener.silence is not None,
        )
        for listener in state.listeners.values()
    )


def leases(state: State, now: Seconds) -> tuple[LeaseView, ...]:
    """Who uses which model, the oldest use first."""
    return tuple(
        LeaseView(
            id=lease.id,
            model=lease.model,
            is_job=lease.is_job,
            is_held=lease.is_held,
            owner=lease.listener or lease.owner,
            purpose=lease.purpose,
            ttl_left=_left(lease.alarm, now) if lease.is_job else None,
        )
        for lease in state.leases.values()
    )


def footprints(state: State) -> dict[tuple[ModelId, tuple[str, ...]], MiB]:
    """What models were measured to take, by their arguments: to be told to the next scheduler."""
    return dict(state.memory.footprints)


def tally(state: State, worker: WorkerId) -> Tally:
    """What a worker has, as the worker itself counts it once it has said all that it had to say."""
    listener = state.listeners.get(worker)
    if listener is None:
        return Tally(waiting=0, held=0)
    held = sum(lease.is_held for lease in listener.leases.values())
    return Tally(waiting=len(listener.waiters) + len(listener.leases) - held, held=held)


def _left(alarm: Alarm | None, now: Seconds) -> Seconds | None:
    """Until a deadline comes; None = there is none."""
    return Seconds(max(0.0, alarm.at - now)) if alarm is not None and alarm.is_live else None


def _held(model: Model, now: Seconds) -> Seconds | None:
    """Holds matter only while the model is idle."""
    left = Seconds(model.holds.until - now)
    return left if left > 0 and not model.leases else None


def _model(state: State, model: Model, now: Seconds) -> ModelView:
    child = model.child
    spec = model.running_spec
    return ModelView(
        id=model.id,
        state=_state_of(model),
        pid=None if child is None else child.pid,
        port=None if child is None else child.port,
        upstream="" if child is None else child.upstream,
        incarnation=None if child is None else child.incarnation,
        in_flight=len(model.leases),
        queued=state.line.count(model.id) + (0 if model.swap is None else len(model.swap.joiners)),
        since=Seconds(now - model.since),
        age=None if child is None or child.pid is None else Seconds(now - child.born),
        closing=_closing(state, model),
        est_vram=memory.size_of(state, spec),
        estimated=spec.est_vram,
        measured=state.memory.footprints.get((model.id, spec.argv)),
        peak=None if child is None else child.peak or None,
        ram=None if child is None else child.ram or None,
        ttl_left=_left(model.idle, now),
        hold_left=_held(model, now),
        is_pinned=model.is_pinned,
        last_error=model.back_off.error,
    )


def _closing(state: State, model: Model) -> str:
    if not model.is_ready:
        return ""
    if model.is_draining:
        return "unload"
    if model.is_removed:
        return "removed"
    is_render_kept = model.running_spec.renders and state.closers.first_without_render is not None
    return "line" if is_render_kept or model.id in state.closers.closing else ""


def _state_of(model: Model) -> ModelState:
    if model.child is not None:
        return ModelState(model.child.phase)
    if model.leaving:
        return ModelState.STOPPING
    return ModelState.FAILED if model.back_off.failures else ModelState.STOPPED
