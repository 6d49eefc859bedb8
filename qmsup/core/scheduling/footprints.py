"""What models were measured to take, and when a figure counts.

A child takes more with its first request than it does when it is ready: caches, buffers of the driver. So a figure that
was seen before does not lower what is known. Then the memory is read once more after the first answer, and what is seen
by then counts. A load log tells of all that is set aside, so it counts as soon as the child has answered anything.
"""

from qmsup.core.scheduling import memory
from qmsup.core.scheduling.effects import Remember
from qmsup.core.scheduling.memory_events import FootprintMeasured, SeenBy
from qmsup.core.scheduling.records import Child, Model
from qmsup.core.scheduling.residency import renew_policy
from qmsup.core.scheduling.state import State
from qmsup.ids import ModelId
from qmsup.units import MiB


def served(state: State, model: Model, child: Child) -> None:
    """The child answered a request, so it works."""
    is_first, child.has_served = not child.has_served, True
    if is_first and _may_grow(state, child):
        state.memory.unproven.add(child.incarnation)
        memory.look(state)
    elif child.peak and not _is_unproven(state, child):
        _believe(state, model.id, child)


def measured(state: State, event: FootprintMeasured) -> None:
    """What a child was seen to use at most, now or in an earlier life."""
    if event.incarnation is None:
        _know(state, event.model, event.argv, event.peak, event.seen_by)
        return
    model = state.models.get(event.model)
    child = None if model is None else model.child
    if child is None or child.incarnation != event.incarnation:
        return
    child.ram = max(child.ram, event.ram)
    if event.peak > child.peak:
        child.peak = event.peak
        child.peak_seen_by = event.seen_by
        if child.has_served and not _is_unproven(state, child):
            _believe(state, event.model, child)


def read(state: State) -> None:
    """The memory was read, if it could be, after these had answered: more they do not take for that."""
    looking = state.memory.looking
    if looking is None or state.memory.free is None:
        return
    proven, looking.proves = looking.proves, set()
    for model in state.models.values() if proven else ():
        child = model.child
        if child is not None and child.peak and child.incarnation in proven:
            _believe(state, model.id, child)


def _is_unproven(state: State, child: Child) -> bool:
    looking = state.memory.looking
    is_read = looking is not None and child.incarnation in looking.proves
    return is_read or child.incarnation in state.memory.unproven


def _may_grow(state: State, child: Child) -> bool:
    """Whether it was seen to use less than is charged for it, by readings that go on."""
    if state.memory.free is None or child.peak_seen_by is not SeenBy.TELEMETRY:
        return False
    size = memory.size_of(state, child.spec)
    seen = max(child.peak, state.memory.held.get(child.incarnation, MiB(0)))
    return not size or seen < size


def _believe(state: State, model: ModelId, child: Child) -> None:
    """What it was seen to use is the size of such starts."""
    if _know(state, model, child.spec.argv, child.peak, child.peak_seen_by):
        state.emit(
            Remember(
                cause=state.event,
                model=model,
                argv=child.spec.argv,
                peak=child.peak,
                ram=child.ram,
                seen_by=child.peak_seen_by,
            )
        )


def _know(state: State, model: ModelId, argv: tuple[str, ...], peak: MiB, seen_by: SeenBy) -> bool:
    """What a model with these arguments was measured to take counts from now on, for what runs as well.

    Returns:
        Whether that is news.
    """
    known_of, whole = state.memory.footprints, state.memory.seen_whole
    known, start = known_of.get((model, argv), MiB(0)), (model, argv)
    is_whole = seen_by is SeenBy.TELEMETRY
    if not peak or peak == known or (peak < known and start in whole and not is_whole):
        return False
    known_of[start] = peak
    (whole.add if is_whole else whole.discard)(start)
    state.record("model.measured", model=model, because=f"{peak} MiB")
    renew_policy(state)
    state.stir_all()
    return True
