"""A new configuration. What runs keeps running; what is no longer named, or has no place, ends when it is idle."""

from qmsup.core.eviction.policy import members_of
from qmsup.core.scheduling import law, lending, pins, residency, shedding, swaps, ttl, waiting
from qmsup.core.scheduling.records import Model
from qmsup.core.scheduling.state import State
from qmsup.core.scheduling.unknown import unknown_model
from qmsup.spec import Spec


def applied(state: State, spec: Spec) -> None:
    """Put a validated configuration in force. Leases and the line stay."""
    former_groups = members_of(state.spec)
    lending.recall(
        state
    )  # what was lent by the former one may be for a model that is gone, or beyond its limit
    state.spec = spec
    removed = [
        model
        for model in state.models.values()
        if model.id not in spec.models and not model.is_removed
    ]
    for model in removed:
        model.is_removed = True
        model.group = former_groups.get(model.id)
        pins.end(state, model)
    for new in spec.models.values():
        model = state.models.setdefault(new.id, Model(new.id, new))
        model.is_removed = False
        model.group = None
        model.memo = None
        if model.spec != new:
            model.spec = new
            model.context = None
    state.line.reorder(spec.scheduler.priority)
    for model in removed:
        _remove(state, model)
    for model in state.models.values():
        ttl.watch(state, model)
    residency.renew_policy(state)
    law.proclaim(state)
    shedding.look(state)
    state.reorder()
    state.record("config.applied", evicts=tuple(model.id for model in removed))
    state.stir_all()


def _remove(state: State, model: Model) -> None:
    waiting.turn_away_all(state, model, unknown_model(state, model.id))
    if model.swap is not None:
        swaps.abort(state, model.swap, is_wanted_gone=True)
    residency.stop_when_idle(state, model)
    residency.forget_removed(state, model)
