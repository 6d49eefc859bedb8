"""The end. Either the models end with the scheduler, or they are left to the next one, and all else with them.

Where they end (`onExit: stop`), nobody is granted any more, what is in flight gets its time, and then they are stopped.
Where they are kept, it ends at once, and without a word: streams go on, and who waits goes on waiting, as the listeners
tell the next scheduler of all of it. Whatever happens in between is left to that one.
"""

from qmsup.core.scheduling import leases, residency, swaps, waiting
from qmsup.core.scheduling.effects import EndProcess
from qmsup.core.scheduling.line import Waiter
from qmsup.core.scheduling.records import Ending
from qmsup.core.scheduling.requests import SHUTTING_DOWN
from qmsup.core.scheduling.state import State
from qmsup.spec import OnExit
from qmsup.units import Seconds


def asked(state: State) -> None:
    """Turn everybody away and give what is in flight its time, or leave all as it is."""
    if state.ending is not None:
        return
    state.ending = Ending(is_handing_over=state.spec.on_exit is OnExit.KEEP)
    state.record("shutdown.asked", because=state.spec.on_exit)
    if state.ending.is_handing_over:
        state.emit(EndProcess(cause=state.event))
        return
    for waiter in state.line.in_order():
        _turn_away(state, waiter)
    for swap in list(state.swaps.values()):
        for waiter in list(swap.joiners):
            _turn_away(state, waiter)
        swaps.abort(state, swap, is_wanted_gone=True)
    at = Seconds(state.now + state.spec.shutdown_drain)
    state.deadlines.add(at, state.ending)


def time_is_up(state: State, ending: Ending) -> None:
    """What is still in flight has had its time."""
    ending.is_over = True
    for model in list(state.models.values()):
        leases.cut_all(state, model, SHUTTING_DOWN)


def go_on(state: State, ending: Ending) -> None:
    """After each event: stop what has become idle, and end when nothing is left to wait for."""
    if ending.is_told:
        return
    for model in list(state.models.values()):
        if model.is_ready and not model.leases:
            residency.stop(state, model)
    if any(True for _ in state.residents):
        return
    if state.leases and not ending.is_over:
        return
    ending.is_told = True
    # Nobody waits for an answer: loads were turned away at once, and unloads ended with the last child.
    state.emit(EndProcess(cause=state.event))


def _turn_away(state: State, waiter: Waiter) -> None:
    waiting.step_out(state, waiter)
    waiting.turn_away(state, waiter, SHUTTING_DOWN)
