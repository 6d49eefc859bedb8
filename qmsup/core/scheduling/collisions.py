"""Which swaps under way stand against one more: those that touch the same models, and some starts on one device.

A render that begins while a swap is still stopping its victims keeps it from loading. It then stands against more
renders until it has.

A program that sizes itself by the memory that is free when it starts takes for free what another one that starts
beside it is about to take. So where one of two does that, they start one after the other.
"""

from qmsup.core.eviction.pools import PoolsPolicy
from qmsup.core.scheduling.records import Model, SwapPhase
from qmsup.core.scheduling.state import State
from qmsup.ids import ModelId


def swaps_against(state: State, model: Model, evict: tuple[ModelId, ...]) -> tuple[ModelId, ...]:
    """The swaps, by target, that have to end before a model may be loaded and these stopped for it."""
    against = [
        target
        for target, swap in state.swaps.items()
        if swap.meets(model.id, evict)
        or start_apart(state, model, state.models[target])
        or (model.spec.renders and swap.phase is SwapPhase.RENDERING)
    ]
    return tuple(against)


def is_locked_out(state: State, model: Model) -> bool:
    """Whether a model may not be spawned now, as an image or a video is being made and it makes none."""
    return bool(state.rendering) and not model.spec.renders


def locked_out(state: State) -> tuple[ModelId, ...]:
    """The targets of swaps that wait for the end of a render.

    Renders wait for these in turn: overlapping ones would keep them out without end.
    """
    return tuple(m for m, swap in state.swaps.items() if swap.phase is SwapPhase.RENDERING)


def start_apart(state: State, one: Model, other: Model) -> bool:
    """Whether two models may not start at the same time, whatever room there is."""
    if not (one.spec.fits_itself or other.spec.fits_itself):
        return False
    return _is_in_ram(state, one) == _is_in_ram(state, other)


def _is_in_ram(state: State, model: Model) -> bool:
    policy = state.policy
    return isinstance(policy, PoolsPolicy) and model.id in policy.ram.pool
