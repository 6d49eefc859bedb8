"""GPU memory as the readings tell it: what a model takes, what there is room for, what is on its way back.

Readings come as events, and only trusted ones do. While there is none, nothing is refused or waited for on their
account: the budget alone decides, as it does on a box without telemetry.
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from qmsup.core.scheduling.effects import ReadMemory
from qmsup.core.scheduling.records import Child, Model, Swap, SwapPhase
from qmsup.core.scheduling.state import State
from qmsup.core.scheduling.stock import Looking, Returning, Taking
from qmsup.errors import Code, Refusal
from qmsup.ids import Incarnation, ModelId
from qmsup.spec import ModelSpec
from qmsup.units import MiB, Seconds

MEMO_LASTS = Seconds(30.0)
"""So long a model that found no room is not tried again, unless some is freed."""
FRESH_FOR = Seconds(0.25)
"""A reading that old is good enough to spawn by: no program takes much of a GPU in less."""
_LOOK_WITHIN = Seconds(0.5)
"""A driver answers within some milliseconds. For one that does not, nobody waits longer than this."""
_NONE = MiB(0)


class Lack(NamedTuple):
    """There is no room for a model.

    Attributes:
        need: what it takes.
        room: what there is for it.
        passes: there would be room, but for what others under way have yet to take, or to give back when they have
            stopped; so it is worth waiting.
        loading: those of them that are being loaded.
    """

    need: MiB
    room: MiB
    passes: bool = False
    loading: tuple[ModelId, ...] = ()


def size_of(state: State, spec: ModelSpec) -> MiB:
    """What a start with these arguments takes: as measured, else as the operator says; 0 = unknown.

    A model that makes images may not have made its largest yet, so of the two the larger counts there.
    """
    measured = state.memory.footprints.get((spec.id, spec.argv))
    if measured is None:
        return spec.est_vram
    return max(measured, spec.est_vram) if spec.renders else measured


def lack_before(state: State, model: Model, evict: Iterable[ModelId]) -> Lack | None:
    """Whether a model would find no room even when these have stopped; asked before they are told to."""
    free = state.memory.free
    need = size_of(state, model.spec)
    if free is None or not need:
        return None
    gone = {*evict}
    room = free + sum(entry.left - entry.unseen for entry in state.memory.returning.values())
    room += sum(_held_by(state, state.models[victim]) for victim in gone)
    stopping = sum(_freed_soon_by(state, m) for m in state.residents if m.id not in gone)
    if need > room + stopping:
        return Lack(need, MiB(room + stopping))
    claims = {swap.target: _claim(state, swap) for swap in state.swaps.values()}
    room -= sum(claims.values()) + _taken_unseen(state, gone)
    if need <= room:
        return None
    return Lack(need, MiB(room), passes=True, loading=tuple(m for m in claims if claims[m]))


def giving_back(state: State) -> tuple[ModelId, ...]:
    """The models that will have freed some when they have stopped."""
    return tuple(model.id for model in state.residents if _freed_soon_by(state, model))


def lack_now(state: State, model: Model) -> Lack | None:
    """Whether a model finds no room at this moment, now that it would be spawned."""
    free = state.memory.free
    need = size_of(state, model.spec)
    if free is None or not need:
        return None
    others = [swap for swap in state.swaps.values() if swap.phase is SwapPhase.LOADING]
    unseen = sum(entry.unseen for entry in state.memory.returning.values())
    room = MiB(free - sum(_claim(state, swap) for swap in others) - _taken_unseen(state) - unseen)
    return Lack(need, room) if need > room else None


def is_to_be_read(state: State, model: Model) -> bool:
    """Whether the newest reading is too old to spawn by. While none can be trusted, none is asked for."""
    memory = state.memory
    if memory.free is None or not size_of(state, model.spec):
        return False
    return state.now - memory.read_at > FRESH_FOR


def look(state: State) -> None:
    """Have the memory read, unless that is under way."""
    if state.memory.looking is None:
        looking = state.memory.looking = Looking(proves=state.memory.unproven)
        state.memory.unproven = set()
        looking.alarm = state.deadlines.add(Seconds(state.now + _LOOK_WITHIN), looking)
        state.emit(ReadMemory(cause=state.event))


def looked(state: State) -> None:
    """It has been read, or is waited for no longer."""
    if (looking := state.memory.looking) is not None:
        state.deadlines.cancel(looking.alarm)
        state.memory.looking = None
        state.memory.unproven |= looking.proves


def is_on_its_way(state: State, model: Model, swap: Swap) -> bool:
    """Whether a load waits for memory: that of its victims, or news of any if it would find no room without.

    Most of it is enough, for a driver keeps some of a process's memory to itself for longer.
    """
    returning = state.memory.returning
    if any(not entry.is_mostly_back for inc, entry in returning.items() if inc in swap.victims):
        return True
    return bool(returning or state.memory.taking) and lack_now(state, model) is not None


def child_ready(state: State, child: Child) -> None:
    """A child has taken what it needs; the reading that shows it is still to come, but not for long."""
    memory = state.memory
    left = size_of(state, child.spec) - memory.held.get(child.incarnation, _NONE)
    if memory.free is not None and left > 0:
        entry = Taking(child.incarnation, MiB(left))
        memory.taking[child.incarnation] = entry
        at = Seconds(state.now + state.spec.scheduler.settle)
        entry.alarm = state.deadlines.add(at, entry)


def child_gone(state: State, incarnation: Incarnation) -> None:
    """A child's end was reported: what it held is on its way back, for as long as that may take."""
    memory = state.memory
    memory.unproven.discard(incarnation)
    held, unseen = memory.held.pop(incarnation, _NONE), _NONE
    if (taking := memory.taking.get(incarnation)) is not None:
        unseen = taking.left
        forget_taking(state, taking)
    if memory.free is None or not held + unseen:
        return
    entry = Returning(incarnation, MiB(held + unseen), unseen=unseen)
    memory.returning[incarnation] = entry
    at = Seconds(state.now + state.spec.scheduler.settle)
    entry.alarm = state.deadlines.add(at, entry)


def forget_returning(state: State, entry: Returning) -> None:
    """It is back, or is waited for no longer."""
    state.deadlines.cancel(entry.alarm)
    state.memory.returning.pop(entry.incarnation, None)


def forget_taking(state: State, entry: Taking) -> None:
    """A reading has shown it, or never will."""
    state.deadlines.cancel(entry.alarm)
    state.memory.taking.pop(entry.incarnation, None)


def within_reach(state: State, free: MiB) -> MiB:
    """What others leave us: what is free, and what our children hold, or held and have not given back."""
    memory = state.memory
    coming = sum(entry.left - entry.unseen for entry in memory.returning.values())
    return MiB(free + sum(memory.held.values()) + coming)


def refusal_of(model: Model, lack: Lack) -> Refusal:
    """The words, with both numbers."""
    return Refusal(
        code=Code.INSUFFICIENT_VRAM,
        message=f"model {str(model.id)!r} needs {lack.need} MiB of GPU memory and finds {lack.room} MiB: "
        "free some, or lower what it takes (estVramGB, its context, its offload)",
        retry_after=MEMO_LASTS,
    )


def refused_lately(state: State, model: Model) -> Refusal | None:
    """The refusal that still stands: it found no room a short while ago, and none has been freed."""
    memo = model.memo
    return memo.refusal if memo is not None and state.now < memo.until else None


def _held_by(state: State, model: Model) -> int:
    return sum(state.memory.held.get(incarnation, _NONE) for incarnation in model.incarnations)


def _freed_soon_by(state: State, model: Model) -> int:
    """What children of a model hold that are told to stop, whatever for."""
    ending = model.leaving if model.is_up else model.incarnations
    return sum(state.memory.held.get(incarnation, _NONE) for incarnation in ending)


def _taken_unseen(state: State, gone: Collection[ModelId] = ()) -> int:
    """What children have taken that still seems free, but for these models'."""
    back = {inc for name in gone for inc in state.models[name].incarnations}
    return sum(entry.left for inc, entry in state.memory.taking.items() if inc not in back)


def _claim(state: State, swap: Swap) -> int:
    """What a swap under way has yet to take of what is free or on its way back."""
    target = state.models[swap.target]
    if swap.phase is SwapPhase.LOADING:
        child = target.child
        assert child is not None, "a load has a child"
        return max(0, size_of(state, child.spec) - state.memory.held.get(child.incarnation, _NONE))
    if swap.is_aborting:
        return 0
    freed = sum(_held_by(state, state.models[victim]) for victim in swap.left)
    return max(0, size_of(state, target.spec) - freed)
