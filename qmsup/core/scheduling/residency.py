"""Which models have a process, and the orders to their owners: bring up, stop, give up a start.

Each start has a number of its own. While a Stop or AbortStart of a number is outstanding the child counts as
stopping, and only the report of its end changes that.
"""

from qmsup.core.eviction.policy import Actuals, policy_for
from qmsup.core.scheduling import memory, ttl
from qmsup.core.scheduling.effects import AbortStart, EnsureReady, Stop
from qmsup.core.scheduling.records import Child, Model, Phase
from qmsup.core.scheduling.state import State
from qmsup.ids import Incarnation


def bring_up(state: State, model: Model) -> Incarnation:
    """Order a new start. If an older one is still stopping, the owner waits for that first."""
    former = model.child
    if former is not None:
        model.leaving.add(former.incarnation)
    incarnation = state.next_incarnation
    state.next_incarnation = Incarnation(incarnation + 1)
    model.child = Child(incarnation, model.spec, state.now, born=state.now)
    model.since = state.now
    state.settle(model)
    if former is not None and former.spec is not model.spec:
        renew_policy(state)
        state.stir_all()  # it may take less than before, and leave room for others
    state.emit(EnsureReady(cause=state.event, model=model.id, incarnation=incarnation))
    return incarnation


def stop(state: State, model: Model) -> None:
    """Order the child to stop, unless it has none, or is stopping already."""
    child = model.child
    if child is not None and child.phase is not Phase.STOPPING:
        _is_stopping(state, model, child)
        state.emit(Stop(cause=state.event, model=model.id, incarnation=child.incarnation))


def give_up_start(state: State, model: Model) -> None:
    """Order a start that nobody waits for to be given up."""
    child = model.child
    assert child is not None, "there is a start to give up"
    _is_stopping(state, model, child)
    state.emit(AbortStart(cause=state.event, model=model.id, incarnation=child.incarnation))


def stop_when_idle(state: State, model: Model) -> None:
    """A model that is closing stops with its last lease."""
    if model.is_closing and model.is_ready and not model.leases and state.missing is None:
        stop(state, model)


def stop_unused(state: State, model: Model) -> None:
    """Nobody has used it for its time to live."""
    state.record("model.unused", model=model.id, because=f"{model.spec.ttl:g} s")
    stop(state, model)
    state.stir_all()


def take_away(state: State, model: Model, incarnation: Incarnation) -> None:
    """A child's end was reported."""
    child = model.child
    if child is not None and child.incarnation == incarnation:
        model.child = None
        state.drop_holds(model)
        model.since = state.now
        model.is_draining = False
    else:
        model.leaving.discard(incarnation)
    memory.child_gone(state, incarnation)
    state.settle(model)
    ttl.watch(state, model)
    if child is not None and child.spec is not model.spec:
        renew_policy(state)


def forget_removed(state: State, model: Model) -> None:
    """A model that the configuration names no longer is forgotten when nothing is left of it."""
    is_known = state.models.get(model.id) is model
    if model.is_removed and is_known and model.is_idle_and_gone:
        del state.models[model.id]
        renew_policy(state)


def renew_policy(state: State) -> None:
    """Make the policy anew: residents are charged by what they run with, removed ones keep their group."""
    state.policy = policy_for(state.spec, actuals(state))


def actuals(state: State) -> Actuals:
    """What runs and how, as far as the configuration does not say it."""
    models = state.models.values()
    return Actuals(
        sizes={spec.id: memory.size_of(state, spec) for spec in state.spec.models.values()},
        charges={model.id: memory.size_of(state, model.running_spec) for model in models},
        ram_charges={model.id: model.running_spec.est_ram for model in models},
        groups={model.id: model.group for model in models if model.group is not None},
        pinned=frozenset(model.id for model in models if model.is_pinned),
        ceiling=state.memory.ceiling,
        ram_ceiling=state.memory.ram_ceiling,
    )


def _is_stopping(state: State, model: Model, child: Child) -> None:
    child.phase = Phase.STOPPING
    state.drop_holds(model)
    model.is_draining = False
    model.since = state.now
    state.settle(model)
    ttl.watch(state, model)
