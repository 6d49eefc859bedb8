"""Pins: an operator wants a model to stay once it is loaded. It makes room for nobody, and is not found idle."""

from qmsup.core.scheduling import residency, ttl
from qmsup.core.scheduling.events import PinAsked
from qmsup.core.scheduling.records import Model
from qmsup.core.scheduling.state import State
from qmsup.core.scheduling.unknown import unknown_model


def asked(state: State, event: PinAsked) -> None:
    """Pin a model or let it go. It need not be loaded, and is not loaded for that; a stop under way goes on."""
    if state.is_repeated(event.ask):
        return
    model = state.models.get(event.model)
    if model is None or model.is_removed:
        state.answer(event.ask, refusal=unknown_model(state, event.model))
        return
    word = "pinned" if event.is_pinned else "unpinned"
    if model.is_pinned != event.is_pinned:
        model.is_pinned = event.is_pinned
        state.record(f"model.{word}", model=model.id)
        for other in state.models.values():
            other.memo = None
        residency.renew_policy(state)
        ttl.watch(state, model)
        state.stir_all()
    state.answer(event.ask, text=f"{model.id} is {word}")


def end(state: State, model: Model) -> None:
    """The configuration has the model no longer: nobody could unpin it, so whoever it keeps waiting would for ever."""
    if model.is_pinned:
        model.is_pinned = False
        state.record("model.unpinned", model=model.id)
