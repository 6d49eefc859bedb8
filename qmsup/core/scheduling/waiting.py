"""Waiters: how one comes to wait, is served, turned away, or leaves. Which of these happens is judged elsewhere."""

from collections.abc import Iterable, Sequence
from typing import assert_never

from qmsup.core.scheduling import leases
from qmsup.core.scheduling.effects import LineMoved, Refuse, TellLoading
from qmsup.core.scheduling.events import LeaseRequested, LoadAsked, RequestArrived
from qmsup.core.scheduling.line import Waiter, Wants
from qmsup.core.scheduling.records import Listener, Model, Swap
from qmsup.core.scheduling.state import State
from qmsup.errors import Refusal
from qmsup.ids import ListenerName, ModelId, RequestId, WorkerId
from qmsup.units import Seconds


def take_in(state: State, waiter: Waiter) -> None:
    """From now on somebody waits, in the line or for a swap. Its deadlines run in either."""
    if not waiter.case.is_past:
        waiter.turn = state.turns.add(waiter.impatient, waiter)
    match waiter.origin:
        case RequestArrived(request=request, listener=listener, timeout=timeout):
            state.waiters[request] = waiter
            state.listeners[listener].waiters[request] = waiter
            if timeout:
                at = Seconds(waiter.rank.arrived + timeout)
                waiter.alarm = state.deadlines.add(at, waiter)
        case LoadAsked(ask=ask) | LeaseRequested(ask=ask):
            state.asks[ask] = waiter
        case _:
            assert_never(waiter.origin)


def lose_patience(state: State, waiter: Waiter) -> None:
    """A waiter's patience is over; in the line it goes before those whose patience is not."""
    if waiter.joined is not None:
        waiter.case = waiter.case._replace(is_past=True)
        return
    state.line.remove(waiter)
    waiter.case = waiter.case._replace(is_past=True)
    state.line.add(waiter)
    if state.line.is_first(waiter):
        state.stir_all()  # it may hold back others


def join(state: State, swap: Swap, waiters: Sequence[Waiter]) -> None:
    """Leave the line for a swap to the model."""
    target = swap.target
    told: dict[WorkerId, list[RequestId]] = {}
    swap.joiners |= dict.fromkeys(waiters)
    for waiter in waiters:
        waiter.joined = target
        waiter.place = 0
        origin = waiter.origin
        if isinstance(origin, RequestArrived):
            if (requests := told.get(origin.listener)) is None:
                requests = told[origin.listener] = []
            requests.append(origin.request)
    for listener, requests in told.items():
        _tell_loading(state, listener, requests)


def tell_where(state: State, waiter: Waiter) -> None:
    """Tell a request's listener at once where it stands; a control client is not told."""
    origin = waiter.origin
    if not isinstance(origin, RequestArrived):
        return
    if waiter.joined is not None:
        _tell_loading(state, origin.listener, (origin.request,))
        return
    waiter.place = state.line.place_of(waiter)
    state.emit(
        LineMoved(
            cause=state.event,
            listener=origin.listener,
            places=((origin.request, waiter.place),),
            was_ready=waiter.was_ready,
        )
    )


def _tell_loading(state: State, listener: WorkerId, requests: Iterable[RequestId]) -> None:
    state.emit(TellLoading(cause=state.event, listener=listener, requests=tuple(requests)))


def serve(state: State, waiter: Waiter) -> None:
    """One who has waited gets what it asked for."""
    _forget(state, waiter)
    serve_at_once(state, waiter.origin, arrived=waiter.rank.arrived, was_ready=waiter.was_ready)


def serve_at_once(
    state: State,
    origin: RequestArrived | LoadAsked | LeaseRequested,
    *,
    arrived: Seconds,
    was_ready: bool = True,
) -> None:
    """Grant a request its lease; tell a control client that its model is ready, or its job's lease held.

    Args:
        state: changed.
        origin: what was asked, and has not waited.
        arrived: when.
        was_ready: the model was ready then.
    """
    match origin:
        case RequestArrived():
            leases.grant(state, origin, arrived=arrived, was_ready=was_ready)
        case LoadAsked(ask=ask, model=model):
            state.answer(ask, f"{model} is ready")
        case LeaseRequested(ask=ask, lease=lease):
            leases.take(state, origin, arrived=arrived, was_ready=was_ready)
            state.answer(ask, lease)
        case _:
            assert_never(origin)


def turn_away(state: State, waiter: Waiter, refusal: Refusal) -> None:
    """Refuse. The waiter is in no line and no swap any more."""
    _forget(state, waiter)
    match waiter.origin:
        case RequestArrived(request=request, listener=listener):
            state.refused.keep(request, refusal)
            state.emit(
                Refuse(cause=state.event, request=request, listener=listener, refusal=refusal)
            )
        case LoadAsked(ask=ask) | LeaseRequested(ask=ask):
            state.answer(ask, refusal=refusal)
        case _:
            assert_never(waiter.origin)


def turn_away_all(state: State, model: Model, refusal: Refusal) -> None:
    """Refuse everybody who waits for a model, first come first told."""
    waiters = [w for group in state.line.of_model(model.id) for w in group.waiters]
    if model.swap is not None:
        waiters += model.swap.joiners
    for waiter in sorted(waiters, key=lambda waiter: waiter.rank):
        step_out(state, waiter)
        turn_away(state, waiter, refusal)


def leave(state: State, waiter: Waiter) -> None:
    """The one who waited has gone."""
    step_out(state, waiter)
    _forget(state, waiter)


def step_out(state: State, waiter: Waiter) -> None:
    """Out of the line, or out of the swap that it waits for."""
    if waiter.joined is None:
        if waiter.case.is_past and state.line.is_first(waiter):
            state.stir_all()  # it may have held back others
        state.line.remove(waiter)
    else:
        del state.swaps[waiter.joined].joiners[waiter]
        waiter.joined = None


def is_heard(state: State, worker: WorkerId) -> bool:
    """Note a sign of life; False for a worker whose process is gone."""
    listener = state.listeners.get(worker)
    if listener is not None:
        hear(state, listener)
        return True
    if worker in state.lost:
        return False
    state.listeners[worker] = Listener(worker, ListenerName(""), 0)
    return True


def hear(state: State, listener: Listener) -> None:
    """A worker lives: what waits in it counts."""
    if listener.silence is not None:
        state.deadlines.cancel(listener.silence)
        listener.silence = None
        _regroup(state, listener)


def fall_silent(state: State, listener: Listener) -> None:
    """Pass over what waits in a silent worker."""
    _regroup(state, listener, Wants.NOTHING)


def _regroup(state: State, listener: Listener, wants: Wants | None = None) -> None:
    models: set[ModelId] = set()
    for waiter in listener.waiters.values():
        in_line = waiter.joined is None
        if in_line:
            state.line.remove(waiter)
        waiter.case = waiter.case._replace(wants=wants or waiter.wants)
        if in_line:
            state.line.add(waiter)
            models.add(waiter.case.model)
            state.is_stirred |= waiter.case.is_past
    state.stirred |= models


def _forget(state: State, waiter: Waiter) -> None:
    state.deadlines.cancel(waiter.alarm)
    state.turns.cancel(waiter.turn)
    match waiter.origin:
        case RequestArrived(request=request, listener=listener):
            if state.waiters.pop(request, None) is not None:
                del state.listeners[listener].waiters[request]
        case LoadAsked(ask=ask) | LeaseRequested(ask=ask):
            state.asks.pop(ask, None)
        case _:
            assert_never(waiter.origin)
