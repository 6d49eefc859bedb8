"""Bounded waiting: whoever has waited out its patience is not overtaken for ever by those who came later.

Overlapping requests would keep a model busy without end, and short loads would take turns in what a long-waiting one
needs. So a waiter that is past its patience and still blocked becomes a *closer*:

- What it would stop is *closed*: requests behind it in the line wait, what is in flight ends. A render locks out
  whatever is no render, so a closer that is none closes every render model, busy or not: two that take turns would
  lock it out for ever.
- What it would load or stop is *reserved*: nothing behind it may load or stop the same, or make it stop more.

There are several closers only where they do not meet; of those that do, the first in the line is one. Whoever waits
for a job that is no render is none: the job may take hours, and what it closes would stand idle until then. Nor is
one that waits for a place at its model's limit: it is the next there already.

Closers are named anew by each walk along the line, first to last; each holds back only who stands behind it. So the
first one's obstacles only ever end, and it starts when the last has; then the same is true of the next.
"""

from collections.abc import Hashable

from qmsup.core.scheduling.claims import Closer
from qmsup.core.scheduling.collisions import start_apart
from qmsup.core.scheduling.line import Because, Case, Rank
from qmsup.core.scheduling.records import Model
from qmsup.core.scheduling.state import State
from qmsup.ids import ModelId

_NO_CLOSER = frozenset(
    {
        Because.SILENT,
        Because.AT_LIMIT,
        Because.YIELDS,
        Because.RESERVED,
        Because.RECOVERING,
        Because.LOOKING,
    }
)


def closing(state: State, model: Model, case: Case, rank: Rank) -> Closer | None:
    """Who keeps a ready model closed to a waiter."""
    closers = state.closers
    closer = closers.closing.get(model.id)
    if closer is not None and _is_before(closer, case, rank):
        return closer
    closer = closers.first_without_render
    if closer is not None and model.running_spec.renders and _is_before(closer, case, rank):
        return closer
    return None


def reserving(
    state: State, model: Model, evict: tuple[ModelId, ...], case: Case, rank: Rank
) -> Closer | None:
    """Who stands against a waiter that would load a model and stop others for it."""
    closers = state.closers
    if not closers.named:
        return None
    for touched in (model.id, *evict):
        closer = closers.reserved.get(touched)
        if closer is not None and _is_before(closer, case, rank):
            return closer
    closer = closers.first_without_render
    if closer is not None and model.spec.renders and _is_before(closer, case, rank):
        return closer
    asked: set[Hashable] = set()
    for closer in closers.named:
        if not _is_before(closer, case, rank):
            continue
        if closer.collides and start_apart(state, state.models[closer.case.model], model):
            return closer  # it is its turn once those that are under way have started
        kind = closer.evict, state.kind_of(closer.case.model)
        if kind in asked:
            continue  # hundreds may wait for memory alone, and most of them are of one size
        asked.add(kind)
        if _enlarges(state, closer, model.id, evict):
            return closer
    return None


def name(state: State, case: Case, rank: Rank, because: Because) -> None:
    """Make a closer of a waiter that has just been found blocked, if it is to be one.

    To be called first to last, while those before it are named already.
    """
    if not case.is_past or because in _NO_CLOSER:
        return
    model = state.models[case.model]
    evict = state.eviction_for(case.model)
    # Who is only BUSY has been found free of those before it.
    if because is not Because.BUSY and reserving(state, model, evict, case, rank) is not None:
        return
    if not any(state.models[victim].has_long_job for victim in evict):
        closer = Closer(case, rank, evict, collides=because is Because.COLLIDES)
        state.closers.add(closer, renders=model.spec.renders)


def tell(state: State) -> None:
    """Tell an operator of closers that were none before."""
    named = state.closers.named
    if named is state.told_closers:
        return
    known = {(closer.case.model, closer.rank) for closer in state.told_closers}
    state.told_closers = named
    for closer in named:
        if (closer.case.model, closer.rank) not in known:
            state.record(
                "line.closes",
                model=closer.case.model,
                evicts=closer.evict,
                because="past its patience",
            )


def _is_before(closer: Closer, case: Case, rank: Rank) -> bool:
    return not case.is_past or closer.rank < rank


def _enlarges(state: State, closer: Closer, target: ModelId, evict: tuple[ModelId, ...]) -> bool:
    """Whether a closer would have to stop more, while this swap is under way or once it is done."""
    state.closers.have_been_weighed = True
    beside = state.running_beside(closer.case.model)
    stopping = [model for model in beside if model in evict]
    others = [model for model in beside if model not in evict and model != target]
    policy = state.policy
    for running in ((*stopping, *others, target), (*others, target)):
        if not set(policy.eviction_for(closer.case.model, running)) <= set(closer.evict):
            return True
    return False
