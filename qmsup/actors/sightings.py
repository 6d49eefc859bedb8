"""What the scheduler actor and the telemetry actor tell each other, beside events: who is there, and what was read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from qmsup.core.eviction.policy import members_of
from qmsup.core.scheduling import memory
from qmsup.core.scheduling.records import Model, Phase
from qmsup.core.scheduling.state import State
from qmsup.core.vram.attribution import Stage
from qmsup.core.vram.floor import Floor
from qmsup.core.vram.reading import Limits, Reading
from qmsup.ids import Incarnation, ModelId
from qmsup.spec import GroupSpec, Pool, Spec
from qmsup.units import MiB


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """One of our children.

    Attributes:
        pid: its leader's; None = it is not spawned yet.
        is_on_gpu: it is to be seen there.
        size: what it is expected to hold there in the end; 0 = unknown.
    """

    model: ModelId
    incarnation: Incarnation
    argv: tuple[str, ...]
    stage: Stage
    pid: int | None = None
    is_on_gpu: bool = True
    size: MiB = MiB(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOnly:
    """All children there are, and what holds for them. Told whenever any of it changes."""

    children: tuple[Watched, ...]
    limits: Limits


@dataclass(frozen=True, slots=True)
class LookedAt:
    """Somebody wants to see readings, and most likely will again."""


@dataclass(frozen=True, slots=True)
class ReadNow:
    """Something is to be spawned: read the memory at once, tell what is new, and then MemoryRead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySeen:
    """The newest reading, to be shown; nothing is decided by it."""

    reading: Reading


@dataclass(slots=True)
class Kept:
    """What outlives a telemetry actor that breaks. Only the one that lives touches it, and who makes the next.

    Attributes:
        floor: what others use when nothing is the matter. Learnt anew beside a game, it would be the game's use.
        has_broken: another is to be made.
    """

    floor: Floor = field(default_factory=Floor)
    has_broken: bool = False


def watch_only(state: State, pids: Mapping[Incarnation, int]) -> WatchOnly:
    """The children as the scheduler knows them.

    Args:
        state: the scheduler's.
        pids: of those that are stopping beside a younger start of their model, of which the state keeps none.
    """
    groups = members_of(state.spec)
    return WatchOnly(
        children=tuple(
            child
            for model in state.models.values()
            for child in _children(state, model, groups.get(model.id, model.group), pids)
        ),
        limits=limits_of(state.spec),
    )


def is_spawning(state: State) -> bool:
    """Whether a start was ordered whose process is not known yet: as a rule it is within a millisecond or two."""
    children = (model.child for model in state.models.values())
    return any(c is not None and c.phase is Phase.STARTING and c.pid is None for c in children)


def limits_of(spec: Spec) -> Limits:
    """What the operator says about the memory."""
    return Limits(
        budget=spec.vram_budget,
        ram_budget=spec.ram_budget,
        reserve=spec.oom_guard_reserve,
        settle=spec.scheduler.settle,
    )


def _children(
    state: State, model: Model, group: GroupSpec | None, pids: Mapping[Incarnation, int]
) -> Iterator[Watched]:
    is_on_gpu = group is None or group.pool is not Pool.RAM
    for incarnation in sorted(model.incarnations):
        child = model.child if model.child and model.child.incarnation == incarnation else None
        yield Watched(
            model=model.id,
            incarnation=incarnation,
            argv=model.spec.argv if child is None else child.spec.argv,
            stage=Stage.STOPPING if child is None else _STAGES[child.phase],
            pid=pids.get(incarnation) if child is None else child.pid,
            is_on_gpu=is_on_gpu,
            size=memory.size_of(state, model.running_spec),
        )


_STAGES = {
    Phase.STARTING: Stage.STARTING,
    Phase.READY: Stage.READY,
    Phase.STOPPING: Stage.STOPPING,
}
