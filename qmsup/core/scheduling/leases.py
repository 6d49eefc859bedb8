"""Leases: one use of a model each. `offered` by a grant, `held` once accepted, then gone.

A count can never be stranded: an offer that nobody answers lapses, and an acceptance that comes after that either
revives the lease, if the same child is still there, or has the listener cut the relay.
"""

from qmsup.core.scheduling import footprints, lending, ttl
from qmsup.core.scheduling.effects import Cut, Grant
from qmsup.core.scheduling.events import (
    LeaseReleased,
    LeaseRequested,
    LiveLease,
    Outcome,
    RequestArrived,
    Use,
)
from qmsup.core.scheduling.holds import Conversation, window
from qmsup.core.scheduling.inheritance import KeptJob
from qmsup.core.scheduling.line import Wants
from qmsup.core.scheduling.records import Lease, Listener, Model
from qmsup.core.scheduling.residency import forget_removed, stop_when_idle
from qmsup.core.scheduling.state import State
from qmsup.errors import Code, Refusal
from qmsup.ids import LeaseId, RequestId, WorkerId
from qmsup.units import Seconds

VOID = Refusal(
    code=Code.MODEL_UNLOADED, message="the model this request was granted on has been stopped"
)
"""What a listener is told whose lease does not exist any more."""

_NOT_LENT = Seconds(0.0)


def grant(state: State, origin: RequestArrived, *, arrived: Seconds, was_ready: bool) -> None:
    """Offer a lease. Who asked is in no line."""
    model = state.models[origin.model]
    child = model.child
    assert child is not None, "only a ready model is granted"
    listener = state.listeners[origin.listener]
    lease = Lease(
        id=LeaseId(origin.request),
        listener=origin.listener,
        model=origin.model,
        incarnation=child.incarnation,
        upstream=child.upstream,
        was_ready=was_ready,
        waited=Seconds(state.now - arrived),
        conversation=conversation_of(listener, origin),
        hold=origin.hold,
    )
    lease.alarm = state.deadlines.add(
        Seconds(state.now + state.spec.scheduler.offer_timeout), lease
    )
    _add(state, model, lease)
    state.emit(grant_of(state, lease, lending.for_how_long(state, model, listener)))


def conversation_of(listener: Listener, origin: RequestArrived | LiveLease | Use) -> Conversation:
    """Whose request it is; without a key all that came over one listener from one client are one conversation."""
    if origin.conversation:
        return Conversation(origin.conversation)
    return Conversation("", listener.name, origin.client)


def take(state: State, origin: LeaseRequested, *, arrived: Seconds, was_ready: bool) -> None:
    """Give a job its lease. It is held at once: who asked has no relay to start, and may renew or release it."""
    model = state.models[origin.model]
    child = model.child
    assert child is not None, "only a ready model is leased"
    lease = Lease(
        id=origin.lease,
        listener=None,
        model=model.id,
        incarnation=child.incarnation,
        upstream=child.upstream,
        was_ready=was_ready,
        waited=Seconds(state.now - arrived),
        conversation=Conversation(origin.lease),
        is_held=True,
        is_job=True,
        owner=origin.owner,
        purpose=origin.purpose,
    )
    lease.alarm = state.deadlines.add(Seconds(state.now + origin.ttl), lease)
    _add(state, model, lease)
    state.ended_jobs.pop(lease.id, None)
    state.record("job.held", model=model.id, lease=lease.id, because=origin.purpose)


def grant_of(state: State, lease: Lease, lent: Seconds = _NOT_LENT) -> Grant:
    """The words of a lease's offer, the first time and when asked again."""
    assert lease.listener is not None, "a job's lease is never offered"
    return Grant(
        cause=state.event,
        request=RequestId(lease.id),
        listener=lease.listener,
        model=lease.model,
        incarnation=lease.incarnation,
        upstream=lease.upstream,
        was_ready=lease.was_ready,
        waited=lease.waited,
        lent=lent,
    )


def accept(state: State, request: RequestId) -> None:
    """The listener relays. Late, the lease is revived or the listener is told to cut."""
    lease = state.leases.get(LeaseId(request))
    if lease is not None:
        _hold(state, lease)
        return
    lapsed = state.lapsed.pop(LeaseId(request), None)
    if lapsed is None:
        return
    model = state.models.get(lapsed.model)
    has_listener = lapsed.listener in state.listeners
    if model is not None and is_serving(model, lapsed) and has_listener:
        lapsed.is_held = True
        _add(state, model, lapsed)
        state.record("lease.revived", model=model.id, request=request)
    else:
        void(state, lapsed)


def decline(state: State, request: RequestId) -> None:
    """The client had gone when the grant came."""
    lease = state.leases.get(LeaseId(request))
    if lease is None:
        state.lapsed.pop(LeaseId(request), None)
    else:
        end(state, lease, Outcome.ABANDONED)


def release(state: State, event: LeaseReleased) -> None:
    """The work under a lease ended; an unknown or released lease is ignored."""
    lease = state.leases.get(event.lease) or state.lapsed.pop(event.lease, None)
    if lease is None:
        return
    if event.served:
        credit(state, lease)
    if event.lease in state.leases:
        outcome = _go_through_uses(state, lease, event) if event.uses else event.outcome
        end(state, lease, outcome)


def _go_through_uses(state: State, lease: Lease, event: LeaseReleased) -> Outcome:
    """Do what the requests under a lent lease would have done one by one; the last one's outcome is the lease's."""
    model, outcome = state.models[lease.model], event.outcome
    assert lease.listener is not None, "a job's lease is not lent"
    listener = state.listeners[lease.listener]
    for use in event.uses:
        _hold_model(state, model, lease, outcome)
        lease.conversation, lease.hold = conversation_of(listener, use), use.hold
        state.drop_hold(model, lease.conversation)
        outcome = use.outcome
    state.touch(model)
    if not event.served and any(use.served for use in event.uses):
        credit(state, lease)
    return outcome


def lapse(state: State, lease: Lease) -> None:
    """Nobody answered the offer in time."""
    state.lapsed.keep(lease.id, lease)
    state.record("lease.lapsed", model=lease.model, request=RequestId(lease.id))
    end(state, lease, Outcome.ABANDONED)


def keep(state: State, model: Model, job: KeptJob) -> None:
    """Go on with a job's lease of a former life, on the child that lives on."""
    child = model.child
    assert child is not None, "a job is kept where its child is"
    lease = Lease(
        id=job.lease,
        listener=None,
        model=model.id,
        incarnation=child.incarnation,
        upstream=child.upstream,
        was_ready=True,
        waited=Seconds(0.0),
        conversation=Conversation(job.lease),
        is_held=True,
        is_job=True,
        owner=job.owner,
        purpose=job.purpose,
    )
    lease.alarm = state.deadlines.add(Seconds(state.now + job.left), lease)
    _add(state, model, lease)
    state.record("job.kept", model=model.id, lease=lease.id, because=job.purpose)


def adopt(state: State, model: Model, lease: Lease) -> None:
    """A listener told of a lease that is not known here."""
    lease.is_held = True
    _add(state, model, lease)


def end(state: State, lease: Lease, outcome: Outcome) -> None:
    """A lease is gone, whatever its state was. The only place where a model becomes idle.

    By its outcome the model may be held for its conversation.
    """
    model = state.models[lease.model]
    del state.leases[lease.id]
    del model.leases[lease.id]
    if lease.listener is not None:
        del state.listeners[lease.listener].leases[lease.id]
    state.deadlines.cancel(lease.alarm)
    _hold_model(state, model, lease, outcome)
    model.idle_since = state.now
    ttl.watch(state, model)
    if model.leases:
        if lease.is_job:
            state.stir_all()  # who would stop the model may be a closer now
        else:
            state.stir(model.id)
        return
    state.reorder()
    stop_when_idle(state, model)
    forget_removed(state, model)
    state.stir_all()


def cut_all(state: State, model: Model, refusal: Refusal) -> None:
    """End everything in flight on a model that is about to be stopped under it."""
    for lease in list(model.leases.values()):
        if lease.listener is not None:
            _cut(state, lease, lease.listener, refusal)
        else:
            note_end_of_job(state, lease, refusal.message)
        end(state, lease, Outcome.FAILED)


def note_end_of_job(state: State, lease: Lease, because: str) -> None:
    """Remember why a job's lease ended, for whoever looks after it and asks."""
    state.ended_jobs.keep(lease.id, because)
    state.record("job.ended", model=lease.model, lease=lease.id, because=because)


def void(state: State, lease: Lease) -> None:
    """Have a listener cut a relay whose lease does not exist."""
    assert lease.listener is not None, "only a relay is cut"
    _cut(state, lease, lease.listener, VOID, had_lapsed=True)


def is_serving(model: Model, lease: Lease) -> bool:
    """Whether the child that a lease was granted on still serves."""
    child = model.child
    return child is not None and model.is_ready and child.incarnation == lease.incarnation


def _hold(state: State, lease: Lease) -> None:
    if not lease.is_held:
        lease.is_held = True
        state.deadlines.cancel(lease.alarm)
        lease.alarm = None


def _hold_model(state: State, model: Model, lease: Lease, outcome: Outcome) -> None:
    lasting = window(state.spec.scheduler, lease.hold, outcome)
    if lasting > 0 and is_serving(model, lease):
        state.hold(model, lease.conversation, Seconds(state.now + lasting))


def _add(state: State, model: Model, lease: Lease) -> None:
    state.lapsed.pop(lease.id, None)
    state.drop_hold(model, lease.conversation)
    state.leases[lease.id] = lease
    model.leases[lease.id] = lease
    if lease.listener is not None:
        state.listeners[lease.listener].leases[lease.id] = lease
    ttl.watch(state, model)
    state.touch(model)
    is_first_render = model.running_spec.renders and len(model.leases) == 1
    if lease.is_job or (is_first_render and state.line.past):
        state.stir_all()  # a closer is kept by something else now, or is none any more
    elif state.line.size and any(
        group.case.wants is Wants.JOB for group in state.line.of_model(model.id)
    ):
        state.stir(model.id)  # it may be the job of this very request


def _cut(
    state: State, lease: Lease, listener: WorkerId, refusal: Refusal, *, had_lapsed: bool = False
) -> None:
    state.emit(
        Cut(
            cause=state.event,
            request=RequestId(lease.id),
            listener=listener,
            refusal=refusal,
            had_lapsed=had_lapsed,
        )
    )


def credit(state: State, lease: Lease) -> None:
    """The child answered a request, so its start was a good one."""
    model = state.models.get(lease.model)
    if model is None:
        return
    if model.child is not None and model.child.incarnation == lease.incarnation:
        footprints.served(state, model, model.child)
    if model.back_off.failures:
        model.back_off = model.back_off.after_service(lease.incarnation)
        state.stir(model.id)
