"""Worker processes of listeners: joined, silent, heard again, lost. What a worker had goes with it.

A worker's greeting is its whole word: a lease or a waiter of its that it does not name is not there any more.
"""

from qmsup.core.scheduling import leases, recovery, requests, waiting
from qmsup.core.scheduling.events import ListenerJoined, LiveLease, Outcome
from qmsup.core.scheduling.lasting import UseLasted
from qmsup.core.scheduling.records import Lease, Listener
from qmsup.core.scheduling.state import State
from qmsup.ids import LeaseId, WorkerId
from qmsup.units import Seconds


def joined(state: State, event: ListenerJoined) -> None:
    """A worker greeted, for the first time or again."""
    listener = state.listeners.get(event.listener)
    if listener is None:
        listener = Listener(event.listener, event.name, event.pid, event.lends)
        state.listeners[event.listener] = listener
        state.record("listener.joined", because=event.listener)
    else:
        listener.name, listener.pid, listener.lends = event.name, event.pid, event.lends
        waiting.hear(state, listener)
    for live in event.leases:
        if _take_over(state, listener, live):
            state.record("lease.adopted", model=live.model, request=live.request)
    _forget_what_ended(state, listener, event)  # only now: what is in use is never idle in between
    for arrival in event.waiting:
        requests.arrived(state, arrival)
    recovery.heard_of(state, event.listener)


def lasted(state: State, event: UseLasted) -> None:
    """What a worker does under a lease that it was lent has a lease of its own from now on."""
    listener = state.listeners.get(event.listener)
    if listener is not None:
        live = LiveLease(
            request=event.request,
            model=event.model,
            incarnation=event.incarnation,
            hold=event.hold,
            conversation=event.conversation,
            client=event.client,
        )
        _take_over(state, listener, live)


def suspected(state: State, worker: WorkerId) -> None:
    """A worker is alive but silent: nothing new for it, what it has is kept for a grace."""
    listener = state.listeners.get(worker)
    if listener is None or listener.silence is not None:
        return
    at = Seconds(state.now + state.spec.scheduler.listener_grace)
    listener.silence = state.deadlines.add(at, listener)
    waiting.fall_silent(state, listener)
    state.record("listener.silent", because=worker)


def lost(state: State, worker: WorkerId) -> None:
    """A worker's process is gone."""
    state.lost.keep(worker, None)
    recovery.heard_of(state, worker)
    listener = state.listeners.get(worker)
    if listener is not None:
        state.record("listener.lost", because=worker)
        state.deadlines.cancel(listener.silence)
        state.lent_to.pop(worker, None)
        _give_up(state, listener)
        del state.listeners[worker]


def silent_for_too_long(state: State, listener: Listener) -> None:
    """The grace is over. If the worker lives, it greets again and its leases are looked at anew."""
    state.record("listener.given_up", because=listener.worker)
    for lease in listener.leases.values():
        state.lapsed.keep(lease.id, lease)
    _give_up(state, listener)


def _give_up(state: State, listener: Listener) -> None:
    for waiter in list(listener.waiters.values()):
        waiting.leave(state, waiter)
    for lease in list(listener.leases.values()):
        leases.end(state, lease, Outcome.ABANDONED)


def _forget_what_ended(state: State, listener: Listener, event: ListenerJoined) -> None:
    live = {LeaseId(lease.request) for lease in event.leases}
    for lease in list(listener.leases.values()):
        # An offer may still be on its way to the worker: it lapses by itself.
        if lease.is_held and lease.id not in live:
            leases.end(state, lease, Outcome.UNKNOWN)
    waits = {arrival.request for arrival in event.waiting}
    for request, waiter in list(listener.waiters.items()):
        if request not in waits:
            waiting.leave(state, waiter)


def _take_over(state: State, listener: Listener, live: LiveLease) -> bool:
    """Know a lease as a worker knows it; whether it was news, and there is something to use under it."""
    lease_id = LeaseId(live.request)
    if (known := state.leases.get(lease_id)) is not None:
        if known.listener == listener.worker:
            requests.accepted(state, live.request)
        else:
            state.record("lease.not_its_own", request=live.request, because=listener.worker)
        return False
    if (waiter := listener.waiters.get(live.request)) is not None:
        waiting.leave(state, waiter)
    model = state.models.get(live.model)
    lease = Lease(
        id=lease_id,
        listener=listener.worker,
        model=live.model,
        incarnation=live.incarnation,
        upstream="",
        was_ready=True,
        waited=live.waited,
        conversation=leases.conversation_of(listener, live),
        hold=live.hold,
    )
    # A child of the scheduler's former life may live on: its streams are left alone.
    is_former = live.incarnation < state.first_incarnation
    if model is not None and (is_former or leases.is_serving(model, lease)):
        leases.adopt(state, model, lease)
        return True
    leases.void(state, lease)
    return False
