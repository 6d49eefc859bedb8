"""A state that contradicts itself is found, and told in words. Each case breaks one thing."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from qmsup.core.scheduling import invariants
from qmsup.core.scheduling.claims import Closer
from qmsup.core.scheduling.holds import Conversation
from qmsup.core.scheduling.line import Case, Rank, Wants
from qmsup.core.scheduling.records import Child, Ending, Lease, Model, Phase, Swap, SwapPhase
from qmsup.core.scheduling.state import State
from qmsup.core.vram.watchdog import Watch
from qmsup.errors import InvariantBrokenError
from qmsup.ids import Incarnation, LeaseId, ModelId, RequestId
from qmsup.spec import GroupSpec, Pool
from qmsup.units import MiB, Seconds
from tests.support.scheduling import WORKER, Desk, group, spec_of

A, B, C, X = (ModelId(m) for m in "abcx")
RANK = Rank(Seconds(0.0), 1)
R1, R2, R3, R5 = (RequestId(f"r{n}") for n in (1, 2, 3, 5))


def busy() -> State:
    """a1 serves r1 (held) and r5 (offered), r2 waits for b (evicts a), r3 joins the load of c2."""
    desk = Desk(spec_of("a b c x"), evicts={"b": "a"})
    desk.play("""
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        r1 accepts ->
        r5 asks a  -> grant r5
        r2 asks b  -> r2 at 1
        r3 asks c  -> load c2, loading r3
        """)
    return desk.scheduler.state


def lease(state: State, request: RequestId) -> Lease:
    return state.leases[LeaseId(request)]


def group_of_b(state: State) -> list[object]:
    return state.line.groups[Case(B, Wants.LEASE)].waiters  # type: ignore[return-value]


def evicting(state: State) -> Swap:
    """A swap to x that waits for b, which never ran."""
    swap = Swap(X, (B,), Seconds(0.0), left={B})
    state.swaps[X] = swap
    state.models[X].swap = swap
    state.settle(state.models[X])
    return swap


def hold_too_much_unwatched(state: State) -> None:
    state.guard.watch = Watch(since=Seconds(0.0))


def rename_swap(state: State) -> None:
    state.swaps[X] = state.swaps.pop(C)


def abort_under_joiners(state: State) -> None:
    state.swaps[C].is_aborting = True


def share_a_victim(state: State) -> None:
    evicting(state).evict = (B, C)


def never_loads(state: State) -> None:
    state.swaps[C].left.add(A)


def wait_for_the_ready(state: State) -> None:
    evicting(state).left = {A}


def wait_for_the_gone(state: State) -> None:
    evicting(state)


def load_without_a_child(state: State) -> None:
    state.models[C].child = None


def start_for_nobody(state: State) -> None:
    state.models[X].child = Child(Incarnation(1), state.models[X].spec, Seconds(0.0))
    state.settle(state.models[X])


def run_a_number_of_the_future(state: State) -> None:
    child = state.models[A].child
    assert child is not None
    child.incarnation = Incarnation(99)


def drain_what_does_not_run(state: State) -> None:
    state.models[X].is_draining = True


def keep_what_was_removed(state: State) -> None:
    state.models[X].is_removed = True


def hide_a_resident(state: State) -> None:
    state._residents.pop(A)


def list_what_is_gone(state: State) -> None:
    state._residents[X] = state.models[X]


def wait_beside_an_open_door(state: State) -> None:
    state.models[A].leases.clear()
    state.reorder()
    for one in list(state.leases):
        del state.leases[one]
    state.listeners[WORKER].leases.clear()


def wait_for_what_nobody_wants(state: State) -> None:
    waiter = state.waiters[R3]
    del state.swaps[C].joiners[waiter]
    del state.waiters[R3]
    del state.listeners[WORKER].waiters[R3]
    state.swaps[C].evict = (B,)


def alarm_of_a_held_lease(state: State) -> None:
    lease(state, R1).alarm = state.deadlines.add(Seconds(1.0), lease(state, R1))


def grant_a_waiter(state: State) -> None:
    state.waiters[R1] = state.waiters[R2]


def hide_a_lease(state: State) -> None:
    del state.models[A].leases[LeaseId(R1)]


def miscount(state: State) -> None:
    state.line.size += 1


def miscount_streaming(state: State) -> None:
    state.line.streaming += 1


def keep_an_empty_group(state: State) -> None:
    group_of_b(state).clear()
    state.line.size = 0


def move_to_another_case(state: State) -> None:
    state.waiters[R2].case = Case(X, Wants.LEASE)


def wrong_priority(state: State) -> None:
    state.line.groups[Case(B, Wants.LEASE)].priority = 7


def in_line_and_swap(state: State) -> None:
    state.waiters[R2].joined = C


def join_the_wrong_swap(state: State) -> None:
    state.waiters[R3].joined = A


def nowhere(state: State) -> None:
    state.swaps[C].joiners.clear()


def hide_from_the_listener(state: State) -> None:
    del state.listeners[WORKER].waiters[R3]


def use_without_telling(state: State) -> None:
    state.running_beside(X)
    state.models[C].last_use = 99
    state.models[C].leases = state.models[A].leases


def miscount_the_impatient(state: State) -> None:
    state.line.past += 1


def lose_patience_too_early(state: State) -> None:
    state.waiters[R3].impatient = Seconds(-1.0)


def hold_what_is_gone(state: State) -> None:
    state.models[B].holds.keep(Conversation("x"), Seconds(-1.0), Seconds(-2.0))


def forget_the_end_of_a_hold(state: State) -> None:
    state.models[A].holds.keep(Conversation("x"), Seconds(5.0), Seconds(0.0))


def close_for_nobody(state: State) -> None:
    state.closers.add(Closer(Case(C, Wants.LEASE, is_past=True), RANK, (A,)), renders=False)


def close_twice(state: State) -> None:
    for victims in ((A,), (B,)):
        closer = Closer(Case(C, Wants.LEASE, is_past=True), RANK, victims)
        state.closers.add(closer, renders=False)


def leave_the_line_alone(state: State) -> None:
    state.stir_all()


def end_with_a_waiter(state: State) -> None:
    state.ending = Ending()


def drain_with_a_waiter(state: State) -> None:
    state.is_draining = True


def settle_for_nothing(state: State) -> None:
    swap = evicting(state)
    swap.left, swap.phase = set(), SwapPhase.SETTLING


def wait_for_no_render(state: State) -> None:
    swap = evicting(state)
    swap.left, swap.phase = set(), SwapPhase.RENDERING


def lend_while_somebody_waits(state: State) -> None:
    state.lent_to[WORKER] = None


def look_at_nothing(state: State) -> None:
    swap = evicting(state)
    swap.left, swap.phase = set(), SwapPhase.LOOKING


def count_down_in_use(state: State) -> None:
    state.models[A].idle = state.deadlines.add(Seconds(9.0), state.models[A])


def leave_what_has_no_place(state: State) -> None:
    """By the group of all, neither a nor c may stand beside the other."""
    state.law.is_doubtful = True
    for one in list(state.leases):
        del state.leases[one]
    state.models[A].leases.clear()
    state.listeners[WORKER].leases.clear()
    state.reorder()


BREAKS: dict[str, Callable[[State], None]] = {
    "leases differ": hide_a_lease,
    "r1 is held, its alarm": alarm_of_a_held_lease,
    "r1 waits and is granted": grant_a_waiter,
    "says 2 waiters and has 1": miscount,
    "1 waiters past their patience": miscount_the_impatient,
    "past its patience at -1.0": lose_patience_too_early,
    "b is held and not ready": hold_what_is_gone,
    "a is held until 5.0": forget_the_end_of_a_hold,
    "hold others back": close_for_nobody,
    "closers meet": close_twice,
    "1 streaming": miscount_streaming,
    "empty or out of order": keep_an_empty_group,
    "somebody else's waiter": move_to_another_case,
    "has priority 7": wrong_priority,
    "in the line and in a swap": in_line_and_swap,
    "the wrong swap": join_the_wrong_swap,
    "2 waiters are known, 1": nowhere,
    "waiters of listeners differ": hide_from_the_listener,
    "swaps share a model": share_a_victim,
    "do not know each other": rename_swap,
    "aborted under its joiners": abort_under_joiners,
    "is loading and waits for": never_loads,
    "waits for a, which is not stopping": wait_for_the_ready,
    "waits for b, which is not stopping": wait_for_the_gone,
    "its child is None": load_without_a_child,
    "x starts for no swap": start_for_nobody,
    "not its own": run_a_number_of_the_future,
    "drains with nothing": drain_what_does_not_run,
    "is still there": keep_what_was_removed,
    "a is not listed": hide_a_resident,
    "x is listed": list_what_is_gone,
    "not the order in which": use_without_telling,
    "was not looked at": leave_the_line_alone,
    "could have had": wait_beside_an_open_door,
    "a load that nobody wants": wait_for_what_nobody_wants,
    "while the scheduler ends": end_with_a_waiter,
    "while the box is drained": drain_with_a_waiter,
    "memory that does not come back": settle_for_nothing,
    "waits for a reading that nobody": look_at_nothing,
    "may keep leases": lend_while_somebody_waits,
    "waits for a render that has ended": wait_for_no_render,
    "a is about to be unloaded": count_down_in_use,
    "a has no place": leave_what_has_no_place,
    "too much is held": hold_too_much_unwatched,
}


@pytest.mark.parametrize(("words", "break_it"), BREAKS.items(), ids=BREAKS.keys())
def test_what_is_broken_is_said(words: str, break_it: Callable[[State], None]) -> None:
    state = busy()
    invariants.check(state, Seconds(0.0))

    break_it(state)

    with pytest.raises(InvariantBrokenError, match=words):
        invariants.check(state, Seconds(0.0))


def test_time_does_not_run_backwards() -> None:
    state = busy()

    with pytest.raises(InvariantBrokenError, match="backwards"):
        invariants.check(state, Seconds(-1.0))


def test_nobody_waits_beside_a_box_where_nothing_happens() -> None:
    desk = Desk(spec_of("a"))
    desk.play("""
        r1 asks a -> load a1, loading r1
        w1 silent ->
        a1 ready  ->
        """)
    state = desk.scheduler.state
    model: Model = state.models[A]
    model.child = None
    state.settle(model)
    state.deadlines.cancel(state.listeners[WORKER].silence)

    with pytest.raises(InvariantBrokenError, match="nothing will happen"):
        invariants.check(state, Seconds(0.0))


@pytest.mark.parametrize(
    "groups", [(), (group("cpu", "b", pool=Pool.RAM),)], ids=["one pool", "two pools"]
)
def test_what_runs_is_charged_by_what_it_was_started_with(groups: tuple[GroupSpec, ...]) -> None:
    desk = Desk(spec_of("a b", sizes={"a": 6}, vram_budget=MiB(10), groups=groups))
    desk.play("r1 asks a -> load a1, loading r1")
    state = desk.scheduler.state
    child = state.models[A].child
    assert child is not None

    child.spec = replace(child.spec, est_vram=MiB(2))

    with pytest.raises(InvariantBrokenError, match="a runs with 2 MiB and is charged 6 MiB"):
        invariants.check(state, Seconds(0.0))


def test_an_aborted_load_has_a_stopping_child() -> None:
    desk = Desk(spec_of("a b"), evicts={"b": "a"})
    desk.play("""
        r1 asks a -> load a1, loading r1
        r1 leaves ->
        r2 asks b -> r2 at 1, abort a1
        """)
    state = desk.scheduler.state
    child = state.models[A].child
    assert child is not None
    child.phase = Phase.STARTING

    with pytest.raises(InvariantBrokenError, match="loads, and its child"):
        invariants.check(state, Seconds(0.0))
