"""Whether a request may be served now, and if not, why: the one decision tree.

An arrival and every re-examination of the line ask `judge`. It changes nothing, and it knows no single request:
waiters of one case get one verdict. The order of the questions is the contract.
"""

from qmsup.core.scheduling import closers, memory
from qmsup.core.scheduling.collisions import is_locked_out, locked_out, swaps_against
from qmsup.core.scheduling.line import Because, Case, Rank, Wants
from qmsup.core.scheduling.messages import message
from qmsup.core.scheduling.records import Model
from qmsup.core.scheduling.state import State
from qmsup.core.scheduling.unknown import unknown_model
from qmsup.errors import Code, Refusal
from qmsup.ids import ModelId
from qmsup.units import Seconds


@message
class Serves:
    """The model is ready and has room: grant."""


@message
class Joins:
    """A swap to the model is under way: wait for that."""


@message
class Starts:
    """Nothing stands against loading the model once these have stopped."""

    evict: tuple[ModelId, ...]


@message
class Waits:
    """It waits in the line.

    Attributes:
        collides: the targets of the swaps that stand in its way.
    """

    because: Because
    collides: tuple[ModelId, ...] = ()


@message
class Refuses:
    """There will be no grant."""

    refusal: Refusal


Verdict = Serves | Joins | Starts | Waits | Refuses

DRAINING = Refusal(
    code=Code.DRAINING,
    message="this box is being drained: it finishes what it has and takes no more until `qmsup undrain`",
    retry_after=Seconds(30.0),
)

_SERVES = Serves()
_JOINS = Joins()
_ALWAYS = frozenset({Wants.JOB, Wants.READY, Wants.TRACKED})
_WHILE_THERE_IS_ROOM = _ALWAYS | {Wants.LEASE}
_WAITS = {because: Waits(because=because) for because in Because}


def judge(state: State, case: Case, rank: Rank) -> Verdict:
    """What becomes of a waiter, now.

    Args:
        state: read, never changed; `state.now` is the time.
        rank: of the first waiter of the case: some are closed out only by who stands before them.
        case: the model, whether a lease or only its readiness is wanted, and whether patience is over.
    """
    model = state.models.get(case.model)
    if model is None or model.is_removed:
        return Refuses(refusal=unknown_model(state, case.model))
    is_ready = model.is_ready
    if (refusal := _refusal(state, model, is_ready=is_ready)) is not None:
        return Refuses(refusal=refusal)
    if case.wants is Wants.NOTHING:
        return _WAITS[Because.SILENT]
    if model.swap is not None:
        return _WAITS[Because.ABORTING] if model.swap.is_aborting else _JOINS
    if is_ready:
        return _judge_ready(state, model, case, rank)
    return _judge_start(state, model, case, rank)


def served_when_loaded(model: Model) -> frozenset[Wants]:
    """Who is served of those that waited for a load that has just ended: up to the limit, whoever else waits."""
    return _WHILE_THERE_IS_ROOM if _has_room(model, Wants.LEASE) else _ALWAYS


def _judge_ready(state: State, model: Model, case: Case, rank: Rank) -> Verdict:
    """A ready target needs no policy: what is loaded is served."""
    # A job may be of a request in flight, which ends only once the job has its lease.
    is_under_way = case.wants is Wants.JOB and any(not x.is_job for x in model.leases.values())
    if model.is_draining and not is_under_way:
        return _WAITS[Because.CLOSING]
    if case.wants is Wants.READY:
        return _SERVES
    is_yielding = bool(state.closers.named) and not is_under_way
    if is_yielding and closers.closing(state, model, case, rank) is not None:
        return _WAITS[Because.YIELDS]
    if (
        state.swaps
        and model.running_spec.renders
        and not is_under_way
        and (first := locked_out(state))
    ):
        return Waits(because=Because.YIELDS, collides=first)
    return _SERVES if _has_room(model, case.wants) else _WAITS[Because.AT_LIMIT]


def _has_room(model: Model, wants: Wants) -> bool:
    return wants is not Wants.LEASE or len(model.leases) < model.limit


def _judge_start(state: State, model: Model, case: Case, rank: Rank) -> Verdict:
    if state.missing is not None:
        return _WAITS[Because.RECOVERING]
    evict = state.eviction_for(model.id)
    for victim in evict:
        if state.models[victim].is_kept:
            return Refuses(refusal=_blocked(state, model, evict))
    if is_locked_out(state, model):
        return _WAITS[Because.RENDERING]
    lack = None if state.memory.free is None else memory.lack_before(state, model, evict)
    if lack is not None and not lack.passes:
        # Nothing is stopped to make room that is not there, and nobody refused for want of what may be there by now.
        is_old = memory.is_to_be_read(state, model)
        return (
            _WAITS[Because.LOOKING] if is_old else Refuses(refusal=memory.refusal_of(model, lack))
        )
    collides = swaps_against(state, model, evict) if state.swaps else ()
    if collides or lack is not None:
        loading = () if lack is None else lack.loading
        return Waits(because=Because.COLLIDES, collides=collides + loading)
    because = _obstacle(state, model, evict, case, rank)
    return Starts(evict=evict) if because is None else _WAITS[because]


def _obstacle(
    state: State, model: Model, evict: tuple[ModelId, ...], case: Case, rank: Rank
) -> Because | None:
    """What else stands against a load: who has waited longer, or the use that its victims are in."""
    if closers.reserving(state, model, evict, case, rank) is not None:
        return Because.RESERVED
    victims = [state.models[victim] for victim in evict]
    for victim in victims:
        if victim.leases:
            return Because.BUSY
    if not case.is_past:
        for victim in victims:
            if victim.holds.until > state.now:
                return Because.HELD
    return None


def _refusal(state: State, model: Model, *, is_ready: bool) -> Refusal | None:
    """Why nobody is to have the model now, whatever runs."""
    if state.is_draining:
        return DRAINING
    if is_ready or (model.memo is None and not model.back_off.failures):
        return None
    return _unavailable(state, model) or memory.refused_lately(state, model)


def _blocked(state: State, model: Model, evict: tuple[ModelId, ...]) -> Refusal:
    pinned = ", ".join(repr(str(m)) for m in evict if state.models[m].is_kept)
    return Refusal(
        code=Code.BLOCKED_BY_PIN,
        message=f"loading {str(model.id)!r} would stop {pinned}, which an operator has pinned: unpin it first",
    )


def _unavailable(state: State, model: Model) -> Refusal | None:
    left = model.back_off.left(state.now)
    if left <= 0:
        return None
    return Refusal(
        code=Code.MODEL_UNAVAILABLE,
        message=f"model {str(model.id)!r} failed to start and is not tried again for {left:.1f} s: "
        f"{model.back_off.error}",
        retry_after=left,
    )
