"""Unloading on request. It ends when the processes it found are gone, and stalls nobody else meanwhile."""

from qmsup.core.scheduling import leases, lending, residency, swaps, waiting
from qmsup.core.scheduling.events import UnloadAsked
from qmsup.core.scheduling.records import Model, Unload
from qmsup.core.scheduling.state import State
from qmsup.core.scheduling.unknown import unknown_model
from qmsup.errors import Code, Refusal
from qmsup.ids import Incarnation


def asked(state: State, event: UnloadAsked) -> None:
    """Turn away who waits for these models, end or await what is in flight, and stop them."""
    if state.is_repeated(event.ask):
        return
    for name in event.models:
        if name not in state.models:
            state.answer(event.ask, refusal=unknown_model(state, name))
            return
    models = [state.models[name] for name in dict.fromkeys(event.models or state.models)]
    unload = Unload(event.ask)
    state.asks[event.ask] = unload
    state.record(
        "unload.asked",
        evicts=tuple(model.id for model in models if not model.is_gone),
        because="drain" if event.drain else "at once",
    )
    for model in models:
        unload.awaits |= model.incarnations
        _unload(state, model, drain=event.drain)
    state.stir_all()
    _answer_if_done(state, unload)


def child_gone(state: State, incarnation: Incarnation) -> None:
    """A process ended; answer whoever waited for the last one."""
    for ask in list(state.asks.values()):
        if isinstance(ask, Unload) and incarnation in ask.awaits:
            ask.awaits.discard(incarnation)
            _answer_if_done(state, ask)


def _unload(state: State, model: Model, *, drain: bool) -> None:
    refusal = Refusal(
        code=Code.MODEL_UNLOADED, message=f"model {str(model.id)!r} was unloaded on request"
    )
    waiting.turn_away_all(state, model, refusal)
    if model.swap is not None:
        swaps.abort(state, model.swap, is_wanted_gone=True)
    if drain and model.is_ready and (model.leases or state.missing is not None):
        model.is_draining = True
        lending.recall(state)  # what comes from now on waits for the next start
        return
    if not drain:
        leases.cut_all(state, model, refusal)
    residency.stop(state, model)


def _answer_if_done(state: State, unload: Unload) -> None:
    if not unload.awaits:
        del state.asks[unload.ask]
        state.answer(unload.ask, "unloaded")
