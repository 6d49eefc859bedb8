"""What an eviction policy is, and which one a configuration asks for."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from qmsup.core.eviction.budget import BudgetPolicy
from qmsup.core.eviction.combinations import Combinations
from qmsup.core.eviction.groups import GroupPolicy
from qmsup.core.eviction.matrix import MatrixPolicy
from qmsup.core.eviction.pools import PoolsPolicy
from qmsup.core.eviction.ram import RamPolicy
from qmsup.ids import ModelId
from qmsup.spec import GroupSpec, MatrixSpec, Pool, Spec
from qmsup.units import MiB


class EvictionPolicy(Protocol):
    """Pure, called very often, never names the target.

    `running` comes coldest first and holds whatever is resident but the target.
    """

    @property
    def name(self) -> str:
        """A word for the log: which policy decided."""
        ...

    def eviction_for(self, target: ModelId, running: Sequence[ModelId]) -> tuple[ModelId, ...]:
        """The running models that must stop before the target may be loaded."""
        ...

    def likeness(self, target: ModelId) -> Hashable:
        """All by which it tells targets apart: those of one likeness are answered alike while none of them runs."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Actuals:
    """How things are, where that differs from what the configuration says.

    Attributes:
        sizes: what models take of VRAM when they are started now, where that is not their estimate.
        charges: what residents are charged of VRAM, which may run by older arguments.
        ram_charges: and of RAM.
        groups: residents that the configuration no longer names stay in the group they were in.
        pinned: persistent, whatever group they are in. A matrix knows no such thing, and members of a group that
            takes turns still take them: whoever asks a policy looks for pinned models in its answer.
        ceiling: what the card has room for right now, when a trusted reading says so.
        ram_ceiling: and what the machine's memory has, where that was read.
    """

    sizes: Mapping[ModelId, MiB] = field(default_factory=dict)
    charges: Mapping[ModelId, MiB] = field(default_factory=dict)
    ram_charges: Mapping[ModelId, MiB] = field(default_factory=dict)
    groups: Mapping[ModelId, GroupSpec] = field(default_factory=dict)
    pinned: frozenset[ModelId] = frozenset()
    ceiling: MiB | None = None
    ram_ceiling: MiB | None = None


_AS_CONFIGURED = Actuals()


def policy_for(spec: Spec, actuals: Actuals = _AS_CONFIGURED) -> EvictionPolicy:
    """The policy that a configuration asks for: its matrix, else its groups and budgets.

    Args:
        spec: the configuration in force.
        actuals: how things are, where that differs.
    """
    if spec.matrix is not None:
        return _by_matrix(spec.matrix)
    by_groups = GroupPolicy(groups={**actuals.groups, **members_of(spec)}, pinned=actuals.pinned)
    on_gpu = _on_gpu(spec, by_groups, actuals)
    pool = frozenset(m for m, group in by_groups.groups.items() if group.pool is Pool.RAM)
    if not pool:
        return on_gpu
    in_ram = RamPolicy(
        pool=pool,
        needs={model.id: model.est_ram for model in spec.models.values()},
        charges=dict(actuals.ram_charges),
        budget=spec.ram_budget,
        ceiling=actuals.ram_ceiling,
        persistent=frozenset(model for model in pool if by_groups.is_persistent(model)),
        fallback=by_groups,
    )
    return PoolsPolicy(gpu=on_gpu, ram=in_ram)


def _by_matrix(matrix: MatrixSpec) -> MatrixPolicy:
    return MatrixPolicy(combinations=Combinations(matrix.sets.values()), costs=matrix.costs)


def _on_gpu(spec: Spec, by_groups: GroupPolicy, actuals: Actuals) -> BudgetPolicy | GroupPolicy:
    if spec.vram_budget is None or spec.vram_budget <= 0:
        return by_groups
    named = {*spec.models, *by_groups.groups, *by_groups.pinned}
    return BudgetPolicy(
        needs={model.id: model.est_vram for model in spec.models.values()} | dict(actuals.sizes),
        charges=dict(actuals.charges),
        budget=spec.vram_budget,
        ceiling=actuals.ceiling,
        persistent=frozenset(model for model in named if by_groups.is_persistent(model)),
        fallback=by_groups,
    )


def members_of(spec: Spec) -> dict[ModelId, GroupSpec]:
    """The group of each model that is in one; the first that names it counts."""
    members: dict[ModelId, GroupSpec] = {}
    for group in spec.groups:
        for model in group.members:
            members.setdefault(model, group)
    return members
