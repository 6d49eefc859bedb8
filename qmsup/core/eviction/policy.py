"""What an eviction policy is, and which one a configuration asks for."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from qmsup.core.eviction.budget import BudgetPolicy
from qmsup.core.eviction.groups import GroupPolicy
from qmsup.ids import ModelId
from qmsup.spec import GroupSpec, Spec
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


def policy_for(
    spec: Spec,
    *,
    charges: Mapping[ModelId, MiB] | None = None,
    groups: Mapping[ModelId, GroupSpec] | None = None,
) -> EvictionPolicy:
    """The policy that a configuration asks for.

    Args:
        spec: the configuration in force.
        charges: residents that run by older arguments are charged by these.
        groups: residents that the configuration no longer names stay in the group they were in.
    """
    by_groups = GroupPolicy(groups={**(groups or {}), **members_of(spec)})
    if spec.vram_budget is None or spec.vram_budget <= 0:
        return by_groups
    named = {*spec.models, *by_groups.groups}
    return BudgetPolicy(
        needs={model.id: model.est_vram for model in spec.models.values()},
        charges=dict(charges or {}),
        budget=spec.vram_budget,
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
