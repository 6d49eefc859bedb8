"""What is done about readings of the GPU memory. Each may help somebody who waits, or tell him that nothing will."""

from qmsup.core.scheduling import footprints, memory, residency, shedding, swaps
from qmsup.core.scheduling.memory_events import CeilingChanged, MemoryReturned
from qmsup.core.scheduling.state import State
from qmsup.core.scheduling.stock import Returning, Taking
from qmsup.units import MiB, mib_from_gb

_FREED = mib_from_gb(0.15)
"""So much more free memory makes a refusal worth thinking over; less is jitter."""


def changed(state: State, event: CeilingChanged) -> None:
    """The newest reading counts. A tighter ceiling stops nothing that runs; it counts for the next load."""
    known = state.memory
    is_other = (known.ceiling, known.ram_ceiling) != (event.ceiling, event.ram_ceiling)
    is_tighter_or_looser = known.ceiling != event.ceiling
    known.ceiling, known.ram_ceiling = event.ceiling, event.ram_ceiling
    known.held = dict(event.held) if event.free is not None else {}
    known.shed_line = event.shed_line if event.free is not None else None
    for taking in list(known.taking.values()):
        memory.forget_taking(state, taking)
    _now_free(state, event.free)
    if event.free is None:
        for entry in list(known.returning.values()):
            memory.forget_returning(state, entry)
    shedding.look(state)
    if is_tighter_or_looser:
        limit = "none" if event.ceiling is None else f"{event.ceiling} MiB"
        state.record("memory.ceiling", because=limit)
    if is_other:
        residency.renew_policy(state)
    _go_on(state)


def returned(state: State, event: MemoryReturned) -> None:
    """Memory of a child that ended came back."""
    # Of the same moment as what is free: else what a load has taken since would seem to lack, and be taken once more.
    state.memory.held.update(event.held)
    for taking in [t for t in state.memory.taking.values() if t.incarnation in event.held]:
        memory.forget_taking(state, taking)
    entry = state.memory.returning.get(event.incarnation)
    if entry is not None:
        entry.returned = event.returned
    _now_free(state, event.free)
    if entry is not None and not entry.left:
        memory.forget_returning(state, entry)
    _go_on(state)


def read(state: State) -> None:
    """The memory is as was told, at this moment."""
    state.memory.read_at = state.now
    footprints.read(state)
    memory.looked(state)
    swaps.memory_read(state)
    if state.memory.unproven and state.memory.free is not None:
        memory.look(state)  # they answered when it was under way
    state.stir_all()


def is_late(state: State) -> None:
    """A reading that was asked for does not come: what is known has to do."""
    state.memory.read_at = state.now
    memory.looked(state)
    swaps.memory_read(state)
    state.stir_all()


def is_overdue(state: State, entry: Returning | Taking) -> None:
    """What has not come back by now, or has not been seen to be taken, is not waited for."""
    if isinstance(entry, Returning):
        memory.forget_returning(state, entry)
    else:
        memory.forget_taking(state, entry)
    _go_on(state)


def _now_free(state: State, free: MiB | None) -> None:
    state.memory.free = free
    state.memory.read_at = state.now
    for entry in state.memory.returning.values():
        entry.unseen = MiB(0)
    if free is None:
        return
    within_reach = memory.within_reach(state, free)
    for model in state.models.values():
        memo = model.memo
        if memo is not None and (
            free >= memo.free + _FREED or within_reach >= memo.within_reach + _FREED
        ):
            model.memo = None


def _go_on(state: State) -> None:
    swaps.memory_moved(state)
    state.stir_all()
