"""After a reload: residents that the new configuration would not let stand together.

Nothing is taken from who uses it. The coldest that has no place among the others is stopped once it is idle and held
by nobody, and so on until the rest may stand together. A ceiling is no law: it tells what is free, not what is meant.
"""

from dataclasses import replace

from qmsup.core.eviction.policy import EvictionPolicy, members_of, policy_for
from qmsup.core.scheduling import memory, residency
from qmsup.core.scheduling.records import Model
from qmsup.core.scheduling.state import State
from qmsup.ids import ModelId
from qmsup.units import Seconds


def proclaim(state: State) -> None:
    """Another configuration is in force: who runs is to be looked at."""
    _forget_holds(state)
    state.law.is_doubtful = True


def is_to_be_enforced(state: State) -> bool:
    """Whether a resident may have to be stopped.

    One that came into use stands elsewhere among the others, so it is not only an end that can decide it.
    """
    return state.law.is_doubtful and state.ending is None and state.missing is None


def enforce(state: State) -> bool:
    """Stop what has no place and is not needed now. True if anything was told to stop."""
    policy = _policy(state)
    has_stopped = False
    while unlawful := _unlawful(state, policy):
        idle = next((model for model in unlawful if _may_stop(state, model)), None)
        if idle is None:
            _look_again_after_holds(state, unlawful)
            return has_stopped
        state.record("model.unlawful", model=idle.id, because=policy.name)
        residency.stop(state, idle)
        state.stir_all()
        has_stopped = True
    _forget_holds(state)
    state.law.is_doubtful = False
    return has_stopped


def overdue(state: State) -> tuple[ModelId, ...]:
    """What has no place, is not needed, and should have been stopped already."""
    if not is_to_be_enforced(state):
        return ()
    return tuple(m.id for m in _unlawful(state, _policy(state)) if _may_stop(state, m))


def _policy(state: State) -> EvictionPolicy:
    """The configured one, with every resident taken for what it runs with."""
    actuals = residency.actuals(state)
    running = {m.id: memory.size_of(state, m.running_spec) for m in state.models.values()}
    return policy_for(state.spec, replace(actuals, sizes=running, ceiling=None, ram_ceiling=None))


def _unlawful(state: State, policy: EvictionPolicy) -> list[Model]:
    """Those that have no place among the hotter ones, coldest first.

    Removed models do not count: they go by themselves.
    """
    groups = members_of(state.spec)
    running = [state.models[name] for name in state.running]
    residents = [m for m in running if not m.is_removed and (m.swap is not None or m.is_up)]
    persistent = {
        m.id for m in residents if m.is_pinned or (m.id in groups and groups[m.id].persistent)
    }
    kept: list[ModelId] = [m.id for m in residents if m.id in persistent]
    unlawful: list[Model] = []
    for model in reversed(residents):
        if model.id in persistent:
            continue
        if _may_stand(policy, model.id, kept):
            kept.insert(0, model.id)
        else:
            unlawful.insert(0, model)
    return unlawful


def _may_stand(policy: EvictionPolicy, model: ModelId, kept: list[ModelId]) -> bool:
    """Whether there is an order of loading in which neither stops the other.

    Some groups are stopped by others and do not stop them, so that order may matter.
    """
    for other in policy.eviction_for(model, kept):
        rest = [name for name in kept if name != other]
        if model in policy.eviction_for(other, [model, *rest]):
            return False
    return True


def _may_stop(state: State, model: Model) -> bool:
    return model.is_ready and not model.leases and model.holds.until <= state.now


def _look_again_after_holds(state: State, unlawful: list[Model]) -> None:
    _forget_holds(state)
    ends = [m.holds.until for m in unlawful if m.is_ready and not m.leases]
    if ends:
        state.law.alarm = state.deadlines.add(Seconds(min(ends)), state.law)


def _forget_holds(state: State) -> None:
    state.deadlines.cancel(state.law.alarm)
    state.law.alarm = None
