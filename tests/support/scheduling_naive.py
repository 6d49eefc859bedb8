"""What `Scheduler.handle` promises to be like, done the slow way: after every event each waiter is judged."""

from qmsup.core.scheduling import closers, lending, memory, places, requests, shutdown, swaps, walks
from qmsup.core.scheduling.admission import Waits, judge
from qmsup.core.scheduling.effects import ArmWake, Effect
from qmsup.core.scheduling.events import Event
from qmsup.core.scheduling.line import Because
from qmsup.core.scheduling.scheduler import _settle, _take
from qmsup.core.scheduling.state import State
from qmsup.units import Seconds


def naive_handle(state: State, event: Event, now: Seconds) -> list[Effect]:
    """What `handle` promises to be like: after every event the whole line is walked, and each is judged."""
    state.begin(now)
    if state.ending is not None and state.ending.is_handing_over:
        state.emit(ArmWake(cause=state.event, at=None))
        return state.effects
    requests.pass_time(state)
    _settle(state, naive_walk)
    _take(state, event)
    swaps.renders_moved(state)
    _settle(state, naive_walk)
    naive_walk(state)
    if state.ending is not None and not state.ending.is_handing_over:
        shutdown.go_on(state, state.ending)
    if state.line.has_moved:
        places.tell(state)
    if state.lent_to and lending.is_unwanted(state):
        lending.recall(state)
    state.emit(ArmWake(cause=state.event, at=state.wake))
    return state.effects


def naive_walk(state: State) -> None:
    """Everybody is judged, one by one, until that changes nothing."""
    is_quiet = False
    while not is_quiet:
        walks.begin_walk(state)
        is_quiet = True
        for waiter in state.line.in_order():
            if waiter.joined is not None:
                continue  # with the one that began the load
            verdict = judge(state, waiter.case, waiter.rank)
            if isinstance(verdict, Waits):
                if verdict.because is Because.LOOKING:
                    memory.look(state)
                closers.name(state, waiter.case, waiter.rank, verdict.because)
            else:
                state.line.remove(waiter)
                walks.promote(state, waiter, verdict)
                is_quiet = False
