"""What is always true between two events. A contradiction is our bug, and is said in words.

Tests look after every step; the daemon does under `QMSUP_CHECK=1`. It walks everything, so not in production.
"""

from collections.abc import Iterable, Iterator

from qmsup.core.eviction.budget import BudgetPolicy
from qmsup.core.eviction.pools import PoolsPolicy
from qmsup.core.scheduling import closers, law, memory
from qmsup.core.scheduling.admission import Waits, judge
from qmsup.core.scheduling.claims import Closers
from qmsup.core.scheduling.collisions import is_locked_out
from qmsup.core.scheduling.line import Because, Waiter
from qmsup.core.scheduling.records import Model, Phase, Swap, SwapPhase
from qmsup.core.scheduling.state import State
from qmsup.errors import InvariantBrokenError
from qmsup.ids import RequestId
from qmsup.units import Seconds


def check(state: State, now: Seconds) -> None:
    """Raise InvariantBrokenError when the state contradicts itself.

    Args:
        state: between two events.
        now: the monotonic clock.
    """
    if state.ending is not None and state.ending.is_handing_over:
        return  # it stands still, while time goes on
    for problem in _problems(state, now):
        raise InvariantBrokenError(problem)


def _problems(state: State, now: Seconds) -> Iterator[str]:
    if now < state.now:
        yield f"time runs backwards: {now} after {state.now}"
    yield from _of_leases(state)
    yield from _of_the_line(state)
    yield from _of_waiters(state)
    if state.is_draining and (state.waiters or state.line.size):
        yield "somebody waits while the box is drained"
    if state.lent_to and state.line.size:
        yield f"somebody waits while {', '.join(state.lent_to)} may keep leases"
    yield from _of_swaps(state)
    for model in state.models.values():
        yield from _of_a_model(state, model)
    yield from _of_waiting(state)
    yield from _of_closers(state)
    yield from _of_the_guard(state)
    yield from _of_charges(state)


def _of_leases(state: State) -> Iterator[str]:
    """A lease is known to the scheduler, to its model and to its listener, or to none of them."""
    by_model = {id_ for model in state.models.values() for id_ in model.leases}
    by_listener = {id_ for listener in state.listeners.values() for id_ in listener.leases}
    jobs = {lease.id for lease in state.leases.values() if lease.is_job}
    if not set(state.leases) == by_model == by_listener | jobs or by_listener & jobs:
        yield f"leases differ: {set(state.leases)}, of models {by_model}, of listeners {by_listener}"
    for lease in state.leases.values():
        awaits_answer = lease.alarm is not None and lease.alarm.is_live
        if lease.is_held == awaits_answer and not lease.is_job:
            yield f"lease {lease.id} is {'held' if lease.is_held else 'offered'}, its alarm is not"
        if RequestId(lease.id) in state.waiters:
            yield f"request {lease.id} waits and is granted"


def _of_the_line(state: State) -> Iterator[str]:
    """The line's counts are right, its groups are in order, and each waiter is in the group of its case."""
    line = state.line
    waiters = [waiter for group in line.groups.values() for waiter in group.waiters]
    if line.size != len(waiters):
        yield f"the line says {line.size} waiters and has {len(waiters)}"
    if line.past != sum(waiter.case.is_past for waiter in waiters):
        yield f"the line says {line.past} waiters past their patience"
    if line.streaming != sum(waiter.is_streaming for waiter in waiters):
        yield f"the line says {line.streaming} streaming waiters"
    for case, group in line.groups.items():
        ranks = [waiter.rank for waiter in group.waiters]
        if not ranks or ranks != sorted(ranks):
            yield f"group {case} is empty or out of order"
        if any(waiter.case != case for waiter in group.waiters):
            yield f"group {case} holds somebody else's waiter"
        if group.priority != state.spec.scheduler.priority.get(case.model, 0):
            yield f"group {case} has priority {group.priority}"


def _of_waiters(state: State) -> Iterator[str]:
    """Whoever waits is in exactly one place: the line, or the swap of its model."""
    places: dict[Waiter, int] = {}
    for waiter in state.line.in_order():
        places[waiter] = places.get(waiter, 0) + 1
        if waiter.joined is not None:
            yield f"{waiter.origin} is in the line and in a swap"
    for swap in state.swaps.values():
        for waiter in swap.joiners:
            places[waiter] = places.get(waiter, 0) + 1
            if waiter.joined != swap.target or waiter.case.model != swap.target:
                yield f"{waiter.origin} waits for the wrong swap"
    yield from _of_patience(places, state.now)
    known = [
        *state.waiters.values(),
        *(ask for ask in state.asks.values() if isinstance(ask, Waiter)),
    ]
    if set(known) != set(places) or any(count != 1 for count in places.values()):
        yield f"{len(known)} waiters are known, {len(places)} are somewhere"
    of_listeners = [w for listener in state.listeners.values() for w in listener.waiters.values()]
    if set(of_listeners) != set(state.waiters.values()):
        yield "waiters of listeners differ from those known"


def _of_patience(waiters: Iterable[Waiter], now: Seconds) -> Iterator[str]:
    """Who is past patience is treated so, and an alarm is set for whoever is not yet."""
    for waiter in waiters:
        is_awaited = waiter.turn is not None and waiter.turn.is_live
        if waiter.case.is_past != (waiter.impatient <= now) or waiter.case.is_past == is_awaited:
            yield f"{waiter.origin} is past its patience at {waiter.impatient}, or its alarm is wrong"


def _of_swaps(state: State) -> Iterator[str]:
    """Two swaps share no victim and no target; each waits for something that will be reported."""
    touched = [model for swap in state.swaps.values() for model in (swap.target, *swap.evict)]
    if len(touched) != len(set(touched)):
        yield f"swaps share a model: {touched}"
    for target, swap in state.swaps.items():
        model = state.models[target]
        if swap.target != target or model.swap is not swap:
            yield f"the swap to {target} and its model do not know each other"
        if swap.is_aborting and swap.joiners:
            yield f"the swap to {target} is aborted under its joiners"
        yield from _of_a_swap(state, swap, model)


def _of_a_swap(state: State, swap: Swap, model: Model) -> Iterator[str]:
    if (swap.phase is SwapPhase.EVICTING) != bool(swap.left):
        yield f"the swap to {swap.target} is {swap.phase} and waits for {swap.left}"
    for victim in swap.left:
        left = state.models[victim]
        if left.is_gone or left.is_ready:
            yield f"the swap to {swap.target} waits for {victim}, which is not stopping"
    if swap.phase is SwapPhase.SETTLING and (
        swap.is_aborting or not (state.memory.returning or state.memory.taking)
    ):
        yield f"the swap to {swap.target} waits for memory that does not come back"
    looking = state.memory.looking
    if swap.phase is SwapPhase.LOOKING and (
        swap.is_aborting or looking is None or looking.alarm is None or not looking.alarm.is_live
    ):
        yield f"the swap to {swap.target} waits for a reading that nobody was asked for"
    if swap.phase is SwapPhase.RENDERING and (swap.is_aborting or not is_locked_out(state, model)):
        yield f"the swap to {swap.target} waits for a render that has ended"
    if swap.phase is SwapPhase.LOADING:
        wanted = Phase.STOPPING if swap.is_aborting else Phase.STARTING
        child = model.child
        if child is None or child.phase is not wanted or child.incarnation != swap.incarnation:
            yield f"the swap to {swap.target} loads, and its child is {child}"


def _of_a_model(state: State, model: Model) -> Iterator[str]:
    """A start belongs to a swap; who is closing is busy; the list of residents is right."""
    child = model.child
    if child is not None:
        if child.phase is Phase.STARTING and model.swap is None:
            yield f"{model.id} starts for no swap"
        if child.incarnation >= state.next_incarnation or child.incarnation in model.leaving:
            yield f"{model.id} runs incarnation {child.incarnation}, which is not its own"
    is_known = state.missing is None  # what is in flight
    if model.is_draining and not (model.is_ready and (model.leases or not is_known)):
        yield f"{model.id} drains with nothing to wait for"
    if model.holds and not model.is_ready:
        yield f"{model.id} is held and not ready"
    alarm = model.hold_alarm
    if (model.holds.until > state.now) != (alarm is not None and alarm.is_live):
        yield f"{model.id} is held until {model.holds.until}, its alarm is {alarm}"
    is_idle = model.is_ready and not model.leases and is_known
    if model.is_removed and (model.is_idle_and_gone or is_idle):
        yield f"{model.id} was removed, is idle, and is still there"
    is_counting = model.idle is not None and model.idle.is_live
    if is_counting != bool(model.spec.ttl and is_idle and not model.is_pinned):
        yield f"{model.id} is {'' if is_counting else 'not '}about to be unloaded for being idle"
    is_resident = model in state.residents
    if is_resident != (not model.is_gone or model.swap is not None):
        yield f"{model.id} is {'' if is_resident else 'not '}listed as resident"


def _of_charges(state: State) -> Iterator[str]:
    """A budget charges what runs by what it was started with."""
    policy = state.policy
    on_gpu = policy.gpu if isinstance(policy, PoolsPolicy) else policy
    if not isinstance(on_gpu, BudgetPolicy):
        return
    for model in state.residents:
        charged, size = on_gpu.charge_of(model.id), memory.size_of(state, model.running_spec)
        if charged != size:
            yield f"{model.id} runs with {size} MiB and is charged {charged} MiB"


def _of_the_guard(state: State) -> Iterator[str]:
    """Where too much is held, something will be done about it, unless the operator forbids."""
    guard = state.guard
    is_due = guard.watch.since is not None and state.spec.oom_guard_evict
    is_awaited = guard.alarm is not None and guard.alarm.is_live
    if is_due != is_awaited and state.ending is None:
        yield f"too much is {'' if is_due else 'not '}held, and the alarm is {guard.alarm}"


def _of_closers(state: State) -> Iterator[str]:
    """Whoever holds others back waits past its patience; two do not meet; the last walk's naming is up to date."""
    named = state.closers
    touched = [m for closer in named.named for m in (closer.case.model, *closer.evict)]
    if len(touched) != len(set(touched)):
        yield f"closers meet: {named.named}"
    state.closers = Closers()
    for group in sorted(state.line.groups.values(), key=lambda group: group.turn):
        rank = group.waiters[0].rank
        verdict = judge(state, group.case, rank)
        # Whoever does not wait is no closer, as one that waits for a place is none.
        because = verdict.because if isinstance(verdict, Waits) else Because.AT_LIMIT
        closers.name(state, group.case, rank, because)
    again, state.closers = state.closers, named
    if again.named != named.named:
        yield f"{named.named} hold others back, and it should be {again.named}"


def _of_waiting(state: State) -> Iterator[str]:
    """Nobody waits who could be served, or beside a box where nothing happens."""
    if state.running != state.by_coldness():
        yield f"{state.running} is not the order in which models make room"
    for overdue in law.overdue(state):
        yield f"{overdue} has no place since the reload, is idle, and is still there"
    if state.stirred or state.is_stirred:
        yield "something changed, and the line was not looked at"
    for group in state.line.groups.values():
        verdict = judge(state, group.case, group.waiters[0].rank)
        if not isinstance(verdict, Waits):
            yield f"{group.case} waits and could have had {verdict}"
        elif any(state.swaps[target].is_abandoned for target in verdict.collides):
            yield f"{group.case} waits for a load that nobody wants"
    if state.line.size and not any(True for _ in state.residents) and not len(state.deadlines):
        yield f"{state.line.size} wait, and nothing will happen"
    if state.ending is not None and (state.waiters or state.line.size):
        yield "somebody waits while the scheduler ends"
