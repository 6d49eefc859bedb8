"""Behind whom a waiter waits: for people who ask, so it may cost more than a judgement."""

from dataclasses import dataclass

from qmsup.core.scheduling import closers, memory
from qmsup.core.scheduling.admission import Waits, judge
from qmsup.core.scheduling.line import Because, Case, Rank
from qmsup.core.scheduling.state import State
from qmsup.ids import ModelId


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a waiter waits.

    Attributes:
        models: in use, held, being loaded, or wanted by who has waited longer.
    """

    because: Because
    models: tuple[ModelId, ...]


def obstacle(state: State, case: Case, rank: Rank) -> Obstacle:
    """What keeps a waiter waiting now."""
    verdict = judge(state, case, rank)
    assert isinstance(verdict, Waits), "the line has been drained"
    return Obstacle(verdict.because, _models_before(state, verdict, case, rank))


def _models_before(state: State, verdict: Waits, case: Case, rank: Rank) -> tuple[ModelId, ...]:
    match verdict.because:
        case Because.RENDERING:
            return state.rendering
        case Because.COLLIDES:
            return verdict.collides or memory.giving_back(state)
        case Because.BUSY | Because.HELD:
            return _victims_kept(state, case, verdict.because)
        case Because.YIELDS | Because.RESERVED:
            return verdict.collides or _model_wanted(state, case, rank)
        case _:
            return (case.model,)


def _victims_kept(state: State, case: Case, because: Because) -> tuple[ModelId, ...]:
    victims = [state.models[victim] for victim in state.eviction_for(case.model)]
    if because is Because.BUSY:
        return tuple(victim.id for victim in victims if victim.leases)
    return tuple(victim.id for victim in victims if victim.holds.until > state.now)


def _model_wanted(state: State, case: Case, rank: Rank) -> tuple[ModelId, ...]:
    """For whom it is kept closed or reserved."""
    model = state.models[case.model]
    if model.is_ready:
        closer = closers.closing(state, model, case, rank)
    else:
        closer = closers.reserving(state, model, state.eviction_for(model.id), case, rank)
    assert closer is not None, "somebody is waited for"
    return (closer.case.model,)
