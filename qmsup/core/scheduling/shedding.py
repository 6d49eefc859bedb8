"""The guard against running out of memory: all models together have held more than others leave them for a while.

Who asked for the memory they hold, a game most likely, dies without it or makes every model crawl. So models that
nobody uses are unloaded until the rest fits. `core.vram.watchdog` says when, and in which order.
"""

from collections.abc import Iterable, Iterator

from qmsup.core.eviction.policy import members_of
from qmsup.core.scheduling import residency
from qmsup.core.scheduling.records import Model
from qmsup.core.scheduling.state import State
from qmsup.core.scheduling.stock import Guard
from qmsup.core.vram import watchdog
from qmsup.core.vram.watchdog import Candidate
from qmsup.units import MiB, Seconds

_LOOK_AGAIN = Seconds(1.0)
"""When all that could be unloaded is in use, or on its way out."""


def look(state: State) -> None:
    """There is a new reading, or another configuration: is too much held, and since when?"""
    guard = state.guard
    is_over = _excess(state, state.residents) > 0
    guard.watch = guard.watch.after(is_over=is_over, now=state.now)
    _await(state, guard.watch.due(state.spec.oom_guard_grace))


def time_is_up(state: State, guard: Guard) -> None:
    """Too much was held all along: unload what nobody needs. If there is nothing, look again before long."""
    if _excess(state, state.residents) <= 0:
        look(state)
        return
    excess = _excess(state, (model for model in state.residents if model.is_up))
    taken = watchdog.victims(_candidates(state), excess)
    if not taken:
        _await(state, Seconds(state.now + _LOOK_AGAIN))
        return
    for name in taken:
        state.record("model.shed", model=name, because=f"all models hold {excess} MiB too much")
        residency.stop(state, state.models[name])
    guard.watch = guard.watch.rested(state.spec.oom_guard_grace, state.now)
    state.stir_all()


def _excess(state: State, models: Iterable[Model]) -> MiB:
    """What these hold beyond what may be held; 0 too where no reading can be trusted."""
    line = state.memory.shed_line
    if line is None:
        return MiB(0)
    return MiB(max(0, sum(_held_by(state, model) for model in models) - line))


def _held_by(state: State, model: Model) -> int:
    return sum(state.memory.held.get(incarnation, 0) for incarnation in model.incarnations)


def _candidates(state: State) -> Iterator[Candidate]:
    if state.missing is not None:
        return  # what looks idle may be in use
    groups = members_of(state.spec)
    for model in state.residents:
        child = model.child
        if child is None or not model.is_ready or model.leases or model.is_pinned:
            continue
        group = groups.get(model.id)
        if group is None or not group.persistent:
            yield Candidate(
                model=model.id,
                holds=state.memory.held.get(child.incarnation, MiB(0)),
                is_kept=model.holds.until > state.now,
            )


def _await(state: State, at: Seconds | None) -> None:
    guard = state.guard
    state.deadlines.cancel(guard.alarm)
    is_on = state.spec.oom_guard_evict and state.ending is None
    guard.alarm = state.deadlines.add(at, guard) if is_on and at is not None else None
