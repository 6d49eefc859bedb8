"""Walks along the line: whoever can be served is; the others wait on, and some of them hold back who is behind.

A walk is about everybody, or about the waiters of some models where only their fate may have changed: then who holds
back others is as the last walk about everybody has named them.
"""

from bisect import insort
from collections.abc import Callable
from typing import assert_never

from qmsup.core.scheduling import closers, memory, swaps, waiting
from qmsup.core.scheduling.admission import Joins, Refuses, Serves, Starts, Waits, judge
from qmsup.core.scheduling.line import Because, Group, Waiter
from qmsup.core.scheduling.state import State
from qmsup.ids import ModelId

_WHATEVER_STOPS = frozenset({Because.SILENT, Because.AT_LIMIT, Because.YIELDS})
"""Who waits for one of these fares the same whatever would have to stop for it."""


def settle(state: State, walk: Callable[[State], None] | None = None) -> None:
    """After each event: serve whoever it helped, and give up the loads that only stand in the way now.

    Args:
        state: changed.
        walk: `drain`, or something slower that comes to the same.
    """
    if not state.line.size:
        state.calm()
        return
    is_first = True
    while is_first or _is_to_be_walked(state):
        is_first = False
        while _is_to_be_walked(state):
            (walk or drain)(state)
        # Rare, so that looking at every group after every event is cheap enough.
        if state.line.size and any(swap.is_abandoned for swap in state.swaps.values()):
            _abort_what_nobody_wants(state)
    closers.tell(state)


def drain(state: State) -> None:
    """Serve whoever can be served, as if the line were walked once, in order, and each judged.

    A group that has to wait is judged once: nothing that happens later in the same walk can help it, but that others
    were found blocked before it; and who is past its patience holds back who stands behind it.
    """
    is_whole = state.is_stirred
    todo = sorted((group.turn, group) for group in _stirred_groups(state))
    if is_whole:
        begin_walk(state)
    else:
        state.stirred.clear()
    is_anybody_blocked = False
    while todo:
        group = todo.pop(0)[1]
        if not group.waiters:
            continue  # they have joined the load that another one began
        waiter = group.waiters[0]
        verdict = judge(state, group.case, waiter.rank)
        if isinstance(verdict, Waits):
            is_anybody_blocked = True
            _wait_on(state, group, verdict.because)
            if is_whole:
                closers.name(state, group.case, waiter.rank, verdict.because)
            continue
        state.line.remove(waiter)
        promote(state, waiter, verdict)
        if group.waiters:
            insort(todo, (group.turn, group))
        if not is_whole:
            _free_those_behind(state, waiter)
        elif not is_anybody_blocked:
            # What this has changed is known to everybody who is judged from now on.
            begin_walk(state)


def begin_walk(state: State) -> None:
    """A walk about everybody takes everything into account, and names the closers anew."""
    state.line.has_held = False
    state.calm()
    state.seen_order = state.running


def promote(state: State, waiter: Waiter, verdict: Serves | Joins | Starts | Refuses) -> None:
    """Do what the judge found. The waiter is in no line."""
    match verdict:
        case Serves():
            waiting.serve(state, waiter)
        case Joins():
            waiting.join(state, state.swaps[waiter.case.model], [waiter])
        case Starts(evict=evict):
            model = state.models[waiter.case.model]
            swap = swaps.start(state, model, evict, waiter.request)
            waiting.join(state, swap, [waiter, *state.line.take(model.id)])
        case Refuses(refusal=refusal):
            waiting.turn_away(state, waiter, refusal)
        case _:
            assert_never(verdict)


def stand_in_line(state: State, waiter: Waiter, because: Because) -> None:
    """One who has just come, and was found blocked, waits at the place of its arrival."""
    group = state.line.add(waiter)
    if group.waiters[0] is not waiter:
        return  # all its like have been found blocked
    state.seen_order = None  # for the others it may have been another
    if group.case.is_past and not state.line.is_latest(waiter):
        state.stir_all()  # it may hold back those behind it
    _wait_on(state, group, because)
    closers.name(state, waiter.case, waiter.rank, because)


def _wait_on(state: State, group: Group, because: Because) -> None:
    """The first of its like was found blocked, so they all are."""
    group.evict = None if because in _WHATEVER_STOPS else state.eviction_for(group.case.model)
    state.line.has_held |= because is Because.HELD
    if because is Because.LOOKING:
        memory.look(state)


def _free_those_behind(state: State, waiter: Waiter) -> None:
    """A closer, if it was one, holds nobody back any more."""
    if any(closer.rank == waiter.rank for closer in state.closers.named):
        state.stir_all()


def _is_to_be_walked(state: State) -> bool:
    if state.is_reordered:
        state.is_reordered = False
        if not state.is_stirred and _is_order_telling(state):
            state.stir_all()
    return state.is_stirred or bool(state.stirred)


def _is_order_telling(state: State) -> bool:
    """Whether anybody may fare otherwise because others would have to stop.

    Once a held model is in use it is not the next to make room, so whoever waits for its hold may start; a closer may
    need others to stop; and by a trusted reading there may be no room where those stop.
    """
    line = state.line
    if not (line.past or line.has_held or state.memory.free is not None):
        state.seen_order = None
        return False
    if state.running == state.seen_order:
        return False
    if state.closers.have_been_weighed or any(
        _has_other_victims(state, g) for g in line.groups.values()
    ):
        return True
    state.seen_order = state.running
    return False


def _has_other_victims(state: State, group: Group) -> bool:
    return group.evict is not None and group.evict != state.eviction_for(group.case.model)


def _stirred_groups(state: State) -> list[Group]:
    if state.is_stirred:
        return list(state.line.groups.values())
    return [group for model in state.stirred for group in state.line.of_model(model)]


def _abort_what_nobody_wants(state: State) -> None:
    """Of the swaps in somebody's way, give up those without a joiner. Some end with that."""
    unwanted: dict[ModelId, None] = {}
    for group in state.line.groups.values():
        verdict = judge(state, group.case, group.waiters[0].rank)
        assert isinstance(verdict, Waits), "the line has been drained"
        unwanted.update((m, None) for m in verdict.collides if state.swaps[m].is_abandoned)
    for target in unwanted:
        swaps.abort(state, state.swaps[target])
