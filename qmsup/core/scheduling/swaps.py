"""Swaps: stop an evict set, then load a target. EVICTING, LOADING, done; or failed, or aborted, from anywhere.

In between it may have to wait: for memory (SETTLING), for a reading of it (LOOKING), or for the end of a render that
has begun since (RENDERING).
A swap is ended by reports about exactly the incarnations it asked for, in whatever order they come.
"""

from qmsup.core.eviction.overload import overloads
from qmsup.core.scheduling import memory, residency, waiting
from qmsup.core.scheduling.admission import served_when_loaded
from qmsup.core.scheduling.collisions import is_locked_out
from qmsup.core.scheduling.line import Waiter, by_arrival
from qmsup.core.scheduling.records import Model, Swap, SwapPhase
from qmsup.core.scheduling.state import State
from qmsup.core.scheduling.stock import Memo
from qmsup.errors import Code, Refusal
from qmsup.ids import ModelId, RequestId
from qmsup.units import Seconds


def start(
    state: State, model: Model, evict: tuple[ModelId, ...], request: RequestId | None
) -> Swap:
    """Stop these models side by side, then load the target; at once when there is nothing to stop."""
    swap = Swap(model.id, evict, state.now)
    state.swaps[model.id] = swap
    model.swap = swap
    state.touch(model)
    state.settle(model)
    _record_start(state, model, evict, request)
    for victim in evict:
        if not state.models[victim].is_gone:
            swap.left.add(victim)
            swap.victims |= state.models[victim].incarnations
            residency.stop(state, state.models[victim])
    # Beside it others would have to stop for who waits: fewer in use, by a matrix, or one that is pinned; and a closer
    # in whose way it is holds back more.
    state.stir_all()
    if not swap.left:
        _go_on(state, swap)
    return swap


def _record_start(
    state: State, model: Model, evict: tuple[ModelId, ...], request: RequestId | None
) -> None:
    """Tell what was decided; and what that goes over, if all that may stop is not enough."""
    staying = [other for other in state.running_beside(model.id) if other not in evict]
    exceeded = overloads(state.policy, model.id, staying)
    because = state.policy.name if evict else "over_budget" if exceeded else "fits"
    state.record("swap.started", model=model.id, request=request, evicts=evict, because=because)
    for overload in exceeded:
        state.record("swap.over_budget", model=model.id, request=request, because=str(overload))


def abort(state: State, swap: Swap, *, is_wanted_gone: bool = False) -> None:
    """Have a swap end without its target.

    Args:
        state: changed.
        swap: has no joiner.
        is_wanted_gone: the model is to stop whatever became of its start, rather than that nobody waits for it.
    """
    assert not swap.joiners, "a swap that somebody waits for is never aborted"
    if swap.is_aborting:
        return
    swap.is_aborting = True
    state.record("swap.aborted", model=swap.target, because=swap.phase)
    if swap.phase is SwapPhase.LOADING:
        order = residency.stop if is_wanted_gone else residency.give_up_start
        order(state, state.models[swap.target])
    elif swap.phase is not SwapPhase.EVICTING:
        ended(state, swap)
    else:
        state.stir_all()  # what it would have taken is free for others


def victim_gone(state: State, victim: ModelId) -> None:
    """A model has no process left; the swap that stopped it goes on."""
    for swap in list(state.swaps.values()):
        if victim in swap.left:
            swap.left.discard(victim)
            if not swap.left:
                _go_on(state, swap)


def memory_moved(state: State) -> None:
    """Memory came back, or will not: loads that wait for it go on."""
    for swap in list(state.swaps.values()):
        if swap.phase is SwapPhase.SETTLING:
            _go_on(state, swap)


def renders_moved(state: State) -> None:
    """After each event: loads that waited for the end of a render go on when it is over."""
    for swap in list(state.swaps.values()):
        if swap.phase is SwapPhase.RENDERING and not is_locked_out(
            state, state.models[swap.target]
        ):
            state.stir_all()  # renders that came since have waited for it
            _go_on(state, swap)


def memory_read(state: State) -> None:
    """Loads that waited for a reading go on by what is known now."""
    for swap in list(state.swaps.values()):
        if swap.phase is SwapPhase.LOOKING:
            _go_on(state, swap, looks=False)


def loaded(state: State, swap: Swap) -> None:
    """The target answers requests."""
    model = state.models[swap.target]
    model.load_time = Seconds(state.now - swap.started)
    state.record("swap.done", model=swap.target, because=f"{model.load_time:.3f} s")
    joiners = sorted(swap.joiners, key=by_arrival)
    _close(state, model)
    back: list[Waiter] = []
    served = served_when_loaded(model)
    for waiter in joiners:
        waiter.joined = None
        # Before anybody else is judged: whoever paid for the load is served by it, up to the limit.
        if waiter.case.wants in served:
            waiting.serve(state, waiter)
            served = served_when_loaded(model)
        else:
            back.append(waiter)
    state.line.put_back(back)


def failed(state: State, swap: Swap, reason: str, last_lines: str) -> None:
    """The target could not be started."""
    model = state.models[swap.target]
    state.record("swap.failed", model=swap.target, because=reason)
    words = f"model {str(swap.target)!r} could not be loaded: {reason}"
    if last_lines:
        words += f"\n{last_lines}"
    refusal = Refusal(
        code=Code.MODEL_LOAD_FAILED,
        message=words,
        retry_after=model.back_off.left(state.now),
    )
    _refuse(state, swap, refusal)


def _refuse(state: State, swap: Swap, refusal: Refusal) -> None:
    """Nobody who waits for it is served."""
    joiners = sorted(swap.joiners, key=by_arrival)
    swap.joiners.clear()
    _close(state, state.models[swap.target])
    for waiter in joiners:
        waiting.turn_away(state, waiter, refusal)


def ended(state: State, swap: Swap) -> None:
    """An aborted swap is over."""
    _close(state, state.models[swap.target])


def _go_on(state: State, swap: Swap, *, looks: bool = True) -> None:
    """What had to stop is gone: load the target, once its memory is back and if there is room.

    Args:
        state: changed.
        swap: has nothing left to stop.
        looks: whether an old reading is made anew first.
    """
    model = state.models[swap.target]
    if swap.is_aborting:
        ended(state, swap)
    elif is_locked_out(state, model):
        swap.phase = SwapPhase.RENDERING
    elif memory.is_on_its_way(state, model, swap):
        swap.phase = SwapPhase.SETTLING
    elif looks and memory.is_to_be_read(state, model):
        swap.phase = SwapPhase.LOOKING
        memory.look(state)
    elif (lack := memory.lack_now(state, model)) is not None:
        _find_no_room(state, model, swap, lack)
    else:
        _load(state, model, swap)


def _find_no_room(state: State, model: Model, swap: Swap, lack: memory.Lack) -> None:
    """Do not spawn what would fail, or make others fail; and do not empty the card for it again and again."""
    free = state.memory.free
    assert free is not None, "without a reading nothing is known to lack"
    refusal = memory.refusal_of(model, lack)
    until = Seconds(state.now + memory.MEMO_LASTS)
    within_reach = memory.within_reach(state, free)
    model.memo = Memo(refusal=refusal, until=until, free=free, within_reach=within_reach)
    state.deadlines.add(until, model)
    state.record("swap.failed", model=model.id, because=refusal.message)
    _refuse(state, swap, refusal)


def _load(state: State, model: Model, swap: Swap) -> None:
    swap.phase = SwapPhase.LOADING
    swap.incarnation = residency.bring_up(state, model)


def _close(state: State, model: Model) -> None:
    del state.swaps[model.id]
    model.swap = None
    state.settle(model)
    residency.forget_removed(state, model)
    state.stir_all()
