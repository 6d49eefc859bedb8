"""Leases of jobs: taken on purpose, for work that outlives its request. They end when released, or when not renewed.

Such a lease counts in flight for every rule, so its model is neither evicted nor found idle. No listener's death
ends it; the end of the child that it was taken on does, because the job has ended there too.
"""

from qmsup.core.scheduling import leases, requests, waiting
from qmsup.core.scheduling.events import LeaseRenewed, LeaseRequested, Outcome, ReleaseAsked
from qmsup.core.scheduling.line import Waiter
from qmsup.core.scheduling.records import Lease, Model
from qmsup.core.scheduling.state import State
from qmsup.errors import Code, Refusal
from qmsup.ids import AskId, Incarnation, LeaseId
from qmsup.units import Seconds


def requested(state: State, event: LeaseRequested) -> None:
    """Have a lease once the model is ready; a lease that is held already is answered, not taken twice."""
    if state.is_repeated(event.ask):
        return
    if event.ttl <= 0:
        _refuse(state, event.ask, "a lease must live for some time: give it more than 0 s")
        return
    held = state.leases.get(event.lease)
    if held is not None and held.is_job and held.model == event.model:
        state.answer(event.ask, text=event.lease)
    elif held is not None or _waiter_for(state, event.lease) is not None:
        _refuse(state, event.ask, f"a lease {str(event.lease)!r} exists: choose another id")
    else:
        requests.load_asked(state, event)


def renewed(state: State, event: LeaseRenewed) -> None:
    """Let a lease live on. One that is over stays so: its model may be gone, and what ran there with it."""
    if state.is_repeated(event.ask):
        return
    lease = state.leases.get(event.lease)
    if lease is None or not lease.is_job:
        what = _what_became_of(state, event.lease)
        _refuse(state, event.ask, f"cannot renew: {what}", is_gone=True)
    elif event.ttl <= 0:
        _refuse(state, event.ask, "to end a lease, release it; to renew it, give it more than 0 s")
    else:
        state.deadlines.cancel(lease.alarm)
        lease.alarm = state.deadlines.add(Seconds(state.now + event.ttl), lease)
        state.answer(event.ask, text=f"lease {lease.id} lives {event.ttl:g} s from now")


def release_asked(state: State, event: ReleaseAsked) -> None:
    """End a lease, or give up waiting for it. What is over already is no error: a lost answer is asked for again."""
    if state.is_repeated(event.ask):
        return
    lease = state.leases.get(event.lease)
    waiter = _waiter_for(state, event.lease)
    if lease is not None and lease.is_job:
        leases.credit(state, lease)
        _end(state, lease, Outcome.FINISHED, "it was released")
        state.answer(event.ask, text=f"lease {event.lease} released")
    elif waiter is not None:
        state.ended_jobs.keep(event.lease, "it was released while it was waited for")
        waiting.step_out(state, waiter)
        waiting.turn_away(state, waiter, _gone(_what_became_of(state, event.lease)))
        state.answer(event.ask, text=f"lease {event.lease} is waited for no longer")
    else:
        state.answer(event.ask, text=f"nothing to release: {_what_became_of(state, event.lease)}")


def expired(state: State, lease: Lease) -> None:
    """Nobody renewed it: whoever looked after the job is gone."""
    _end(state, lease, Outcome.ABANDONED, "it was not renewed in time")


def child_gone(state: State, model: Model, incarnation: Incarnation) -> None:
    """Jobs end with the child that ran them."""
    for lease in list(model.leases.values()):
        if lease.is_job and lease.incarnation == incarnation:
            _end(state, lease, Outcome.FAILED, "its model stopped")


def _end(state: State, lease: Lease, outcome: Outcome, because: str) -> None:
    leases.note_end_of_job(state, lease, because)
    leases.end(state, lease, outcome)


def _waiter_for(state: State, lease: LeaseId) -> Waiter | None:
    """Whoever waits for a lease. Few ask at a time, so they are looked through."""
    waiters = (ask for ask in state.asks.values() if isinstance(ask, Waiter))
    for waiter in waiters:
        if isinstance(waiter.origin, LeaseRequested) and waiter.origin.lease == lease:
            return waiter
    return None


def _what_became_of(state: State, lease: LeaseId) -> str:
    if lease in state.leases:
        return f"lease {str(lease)!r} is a request's, and ends with its response"
    because = state.ended_jobs.get(lease)
    if because is None:
        return f"no lease {str(lease)!r} is known"
    return f"lease {str(lease)!r} is over: {because}"


def _gone(message: str) -> Refusal:
    return Refusal(code=Code.NOT_FOUND, message=message)


def _refuse(state: State, ask: AskId, message: str, *, is_gone: bool = False) -> None:
    code = Code.NOT_FOUND if is_gone else Code.BAD_REQUEST
    state.answer(ask, refusal=Refusal(code=code, message=message))
