"""Draining the box: it takes no more work, so that it can be looked after. What is in flight ends in its own time."""

from qmsup.core.scheduling import swaps, waiting
from qmsup.core.scheduling.admission import DRAINING
from qmsup.core.scheduling.events import DrainAsked
from qmsup.core.scheduling.state import State


def asked(state: State, event: DrainAsked) -> None:
    """Take no more work, or take it again. The answer comes at once and says what is still in flight."""
    if state.is_repeated(event.ask):
        return
    if event.is_draining and not state.is_draining:
        _drain(state)
    elif not event.is_draining and state.is_draining:
        state.is_draining = False
        state.record("box.open")
    words = f"draining, {len(state.leases)} in flight" if state.is_draining else "taking work"
    state.answer(event.ask, text=words)


def tell_again(state: State) -> None:
    """At the start: it has been drained since before, which whoever sees everybody refused has to find out."""
    if state.is_draining:
        state.record("box.draining", because="as before")


def _drain(state: State) -> None:
    """Whoever stands in the line is refused when that is looked at; here it is who has left it for a swap."""
    state.is_draining = True
    state.record("box.draining")
    for swap in list(state.swaps.values()):
        waiting.turn_away_all(state, state.models[swap.target], DRAINING)
        swaps.abort(state, swap)
    state.stir_all()
