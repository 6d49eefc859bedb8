"""Telling waiters their places when the line moves: one message per worker, and not too often."""

from qmsup.core.scheduling.effects import LineMoved
from qmsup.core.scheduling.events import RequestArrived
from qmsup.core.scheduling.line import Wants
from qmsup.core.scheduling.state import State
from qmsup.ids import RequestId, WorkerId
from qmsup.units import Seconds


def tell(state: State) -> None:
    """Tell now if the last time is long enough ago, else arm a deadline for it.

    This walks the whole line, so that the events in between need not.
    """
    line, places = state.line, state.places
    if not line.streaming:
        line.has_moved = False
        state.deadlines.cancel(places.alarm)
        places.alarm = None
        return
    at = Seconds(places.told + state.spec.scheduler.position_interval)
    if state.now < at:
        if places.alarm is None:
            places.alarm = state.deadlines.add(at, places)
        return
    state.deadlines.cancel(places.alarm)
    places.alarm = None
    places.told = state.now
    line.has_moved = False
    for listener, moved in _moved(state).items():
        state.emit(LineMoved(cause=state.event, listener=listener, places=tuple(moved)))


def _moved(state: State) -> dict[WorkerId, list[tuple[RequestId, int]]]:
    moved: dict[WorkerId, list[tuple[RequestId, int]]] = {}
    for place, waiter in enumerate(state.line.in_order(), 1):
        origin = waiter.origin
        if (
            waiter.place != place
            and isinstance(origin, RequestArrived)
            and origin.streaming
            and waiter.case.wants is not Wants.NOTHING
        ):
            waiter.place = place
            moved.setdefault(origin.listener, []).append((origin.request, place))
    return moved
