"""Requests and loads: their arrival, and their end while they wait."""

from typing import assert_never

from qmsup.core.scheduling import leases, waiting, walks, wording
from qmsup.core.scheduling.admission import Joins, Refuses, Serves, Starts, Verdict, Waits, judge
from qmsup.core.scheduling.effects import Refuse
from qmsup.core.scheduling.events import LeaseReleased, LeaseRequested, LoadAsked, RequestArrived
from qmsup.core.scheduling.line import Case, Rank, Waiter, Wants
from qmsup.core.scheduling.records import Model
from qmsup.core.scheduling.state import State
from qmsup.errors import Code, Refusal
from qmsup.ids import AskId, LeaseId, ModelId, RequestId
from qmsup.units import Seconds

SHUTTING_DOWN = Refusal(code=Code.SHUTTING_DOWN, message="the scheduler is shutting down")

_A_LOAD = Seconds(5.0)
"""Taken for a model's load time until one has been seen."""
_LONGEST_RETRY = Seconds(300.0)
_NO_TIME = Seconds(0.0)


def arrived(state: State, event: RequestArrived) -> None:
    """Somebody asks for a model, or asks again."""
    if _is_repeated(state, event):
        return
    if not waiting.is_heard(state, event.listener):
        return
    if state.is_stirred and state.line.past:
        walks.drain(state)  # whoever is heard again with it comes first
        state.stir_all()
    wants = Wants.TRACKED if event.is_tracked else Wants.LEASE
    _admit(state, event, wants, patience=event.patience, waited=event.waited)


def load_asked(state: State, event: LoadAsked | LeaseRequested) -> None:
    """A control client wants a model ready, or a job a lease of it."""
    if state.is_repeated(event.ask):
        return
    wants = Wants.READY if isinstance(event, LoadAsked) else Wants.JOB
    _admit(state, event, wants)


def abandoned(state: State, request: RequestId) -> None:
    """The client of a waiting request has gone; of one whose offer is under way, too."""
    waiter = state.waiters.get(request)
    if waiter is not None:
        waiting.leave(state, waiter)
        return
    lease = state.leases.get(LeaseId(request))
    if lease is not None and not lease.is_held:
        leases.decline(state, request)


def accepted(state: State, request: RequestId) -> None:
    """The worker relays."""
    _no_longer_waits(state, request)
    leases.accept(state, request)


def declined(state: State, request: RequestId) -> None:
    """The client had gone when the grant came."""
    _no_longer_waits(state, request)
    leases.decline(state, request)


def released(state: State, event: LeaseReleased) -> None:
    """The work under a lease ended."""
    _no_longer_waits(state, RequestId(event.lease))
    leases.release(state, event)


def withdrawn(state: State, ask: AskId) -> None:
    """The control client is gone: a load is wanted no longer, an unload goes on without an answer."""
    match state.asks.get(ask):
        case Waiter() as waiter:
            waiting.leave(state, waiter)
        case None:
            pass
        case _:
            del state.asks[ask]


def timed_out(state: State, waiter: Waiter) -> None:
    """A waiter's own deadline has come."""
    waited = state.now - waiter.rank.arrived
    why = _why_it_waits(state, waiter)
    waiting.step_out(state, waiter)
    waiting.turn_away(
        state,
        waiter,
        Refusal(
            code=Code.WAIT_TIMEOUT,
            message=f"no turn on model {str(waiter.case.model)!r} within {waited:.1f} s: {why}",
        ),
    )


def _why_it_waits(state: State, waiter: Waiter) -> str:
    """In words that name no other model: its client may not be meant to know them."""
    if waiter.joined is not None:
        return "it is still loading"
    verdict = judge(state, waiter.case, waiter.rank)
    return wording.reason(verdict.because) if isinstance(verdict, Waits) else "it was next"


def pass_time(state: State) -> bool:
    """Before each event: patience and holds that have ended since the last one count no longer.

    Returns:
        Whether there were any.
    """
    has_passed = False
    while (due := state.turns.take_due(state.now)) is not None:
        has_passed = True
        match due:
            case Waiter():
                waiting.lose_patience(state, due)
            case Model():
                state.stir_all()
            case _:
                assert_never(due)
    return has_passed


def _is_repeated(state: State, event: RequestArrived) -> bool:
    """Whether it is known; then it gets its last answer again."""
    request = event.request
    if (lease := state.leases.get(LeaseId(request))) is not None:
        state.emit(leases.grant_of(state, lease))
    elif (waiter := state.waiters.get(request)) is not None:
        waiting.tell_where(state, waiter)
    elif (refusal := state.refused.get(request)) is not None:
        state.emit(
            Refuse(cause=state.event, request=request, listener=event.listener, refusal=refusal)
        )
    else:
        return False
    return True


def _no_longer_waits(state: State, request: RequestId) -> None:
    """A request whose offer lapsed may have been asked for again, and then the worker took up that offer."""
    if (waiter := state.waiters.get(request)) is not None:
        waiting.leave(state, waiter)


def _admit(
    state: State,
    origin: RequestArrived | LoadAsked | LeaseRequested,
    wants: Wants,
    *,
    patience: Seconds | None = None,
    waited: Seconds = _NO_TIME,
) -> None:
    """Judge one who has just come. Usually it is served at once, and never is a waiter."""
    state.arrivals += 1
    arrived = Seconds(state.now - waited)
    rank = Rank(arrived, state.arrivals)
    impatient = Seconds(arrived + (state.spec.scheduler.patience if patience is None else patience))
    case = Case(origin.model, wants, impatient <= state.now)
    verdict: Verdict = Refuses(refusal=SHUTTING_DOWN)
    if state.ending is None:
        verdict = judge(state, case, rank)
    if isinstance(verdict, Serves):
        waiting.serve_at_once(state, origin, arrived=arrived)
    else:
        _take_in(state, Waiter(origin, case, rank, impatient), verdict)


def _take_in(state: State, waiter: Waiter, verdict: Joins | Starts | Waits | Refuses) -> None:
    """One who has just come is not served at once."""
    model = state.models.get(waiter.case.model)
    waiter.was_ready = model is not None and model.is_ready
    match verdict:
        case Waits(because=because):
            refusal = _full(state, waiter)
            if refusal is not None:
                waiting.turn_away(state, waiter, refusal)
                return
            waiting.take_in(state, waiter)
            walks.stand_in_line(state, waiter, because)
            waiting.tell_where(state, waiter)
            state.record(
                "request.waits",
                model=waiter.case.model,
                request=waiter.request,
                because=because,
            )
        case Joins() | Starts():
            waiting.take_in(state, waiter)
            walks.promote(state, waiter, verdict)
        case Refuses(refusal=refusal):
            waiting.turn_away(state, waiter, refusal)
        case _:
            assert_never(verdict)


def _full(state: State, waiter: Waiter) -> Refusal | None:
    """Whether there is no more room to wait in."""
    if waiter.case.wants is Wants.TRACKED:
        return None
    line = state.line
    if line.size >= state.spec.scheduler.line_max:
        return Refusal(
            code=Code.LINE_FULL,
            message=f"{wording.waiting(line.size)} already, over all models",
            retry_after=_until_a_turn(state, waiter.case.model),
        )
    model = state.models[waiter.case.model]
    waits = line.count(model.id)
    if model.spec.queue_max is not None and waits >= model.spec.queue_max:
        return Refusal(
            code=Code.QUEUE_FULL,
            message=f"{wording.waiting(waits)} already for model {str(model.id)!r}"
            if waits
            else f"model {str(model.id)!r} cannot be had at once, and its queueMax of 0 lets nobody wait",
            retry_after=_until_a_turn(state, model.id),
        )
    return None


def _until_a_turn(state: State, own: ModelId) -> Seconds:
    """A guess from the load times seen: everybody who waits is loaded once before this one."""
    ahead = {group.case.model for group in state.line.groups.values()} | {own}
    total = sum(_load_time(state.models[model]) for model in ahead)
    return Seconds(min(_LONGEST_RETRY, max(1.0, total)))


def _load_time(model: Model) -> Seconds:
    return _A_LOAD if model.load_time is None else model.load_time
