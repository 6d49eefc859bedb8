"""What is heard of child processes. Each report names the start it is about; only that one is believed."""

from qmsup.core.scheduling import jobs, lending, memory, residency, swaps, ttl, unload
from qmsup.core.scheduling.events import (
    ProcessFailed,
    ProcessReady,
    ProcessStarting,
    ProcessStopped,
)
from qmsup.core.scheduling.records import Child, Model, Phase
from qmsup.core.scheduling.state import State
from qmsup.ids import Incarnation, ModelId

_UNASKED = "it stopped without being told to"


def starting(state: State, event: ProcessStarting) -> None:
    """A child was spawned."""
    child = _child(state, event.model, event.incarnation)
    if child is not None:
        child.pid = event.pid
        child.port = event.port
        child.born = state.now


def ready(state: State, event: ProcessReady) -> None:
    """A child answers requests; one that was told to stop meanwhile is not believed."""
    child = _child(state, event.model, event.incarnation)
    if child is None or child.phase is not Phase.STARTING:
        return
    model = state.models[event.model]
    child.phase = Phase.READY
    child.pid = event.pid
    child.upstream = event.upstream
    child.total_slots = event.total_slots
    child.context = model.context = event.context
    child.since = state.now
    model.since = model.idle_since = state.now
    assert model.swap is not None, "a start belongs to a swap"
    memory.child_ready(state, child)
    swaps.loaded(state, model.swap)
    ttl.watch(state, model)


def stopped(state: State, event: ProcessStopped) -> None:
    """A child is gone, as it was told."""
    _ended(state, event.model, event.incarnation, _UNASKED, "")


def failed(state: State, event: ProcessFailed) -> None:
    """A child could not start, or died by itself; if it was told to stop, that is just its end."""
    _ended(state, event.model, event.incarnation, event.reason, event.last_lines)


def _child(state: State, name: ModelId, incarnation: Incarnation) -> Child | None:
    model = state.models.get(name)
    if model is None or model.child is None or model.child.incarnation != incarnation:
        return None
    return model.child


def _ended(
    state: State, name: ModelId, incarnation: Incarnation, reason: str, last_lines: str
) -> None:
    model = state.models.get(name)
    child = _child(state, name, incarnation)
    if model is None or (child is None and incarnation not in model.leaving):
        return
    if child is not None and child.phase is not Phase.STOPPING and not child.has_served:
        _count_failure(state, model, child, reason)
    if model.leases:
        lending.recall(state)  # a worker would send its next request to nobody
    residency.take_away(state, model, incarnation)
    jobs.child_gone(state, model, incarnation)
    if child is not None:
        _tell_swap(state, model, child, reason, last_lines)
    if model.is_gone:
        swaps.victim_gone(state, model.id)
    unload.child_gone(state, incarnation)
    residency.forget_removed(state, model)
    state.stir_all()


def _count_failure(state: State, model: Model, child: Child, reason: str) -> None:
    model.back_off = model.back_off.after_failure(child.incarnation, reason, state.now)
    state.deadlines.add(model.back_off.until, model)


def _tell_swap(state: State, model: Model, child: Child, reason: str, last_lines: str) -> None:
    """The end of the youngest child ends the swap that asked for it; without one it is a crash."""
    swap = model.swap
    if swap is not None and swap.incarnation == child.incarnation:
        if swap.is_aborting:
            swaps.ended(state, swap)
        else:
            swaps.failed(state, swap, reason, last_lines)
    elif child.phase is Phase.READY:
        state.record("model.crashed", model=model.id, because=reason)
