"""The group policy: a model makes room by the group it is in, whatever anything weighs."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from qmsup.ids import ModelId
from qmsup.spec import GroupSpec

DEFAULT = GroupSpec(id="(default)", members=())
"""The group of models that are in none: they take turns, and others' groups make room for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPolicy:
    """Members of one group take turns (`swap`); an `exclusive` group stops the others, but `persistent` ones.

    Loading from a group that is not exclusive never stops an exclusive one: that is what operators of
    llama-swap know, and it is kept.

    Attributes:
        groups: the group of each model that is in one.
        pinned: what an operator wants to stay: as if each were in a persistent group.
    """

    name: ClassVar[str] = "groups"
    groups: Mapping[ModelId, GroupSpec]
    pinned: frozenset[ModelId] = frozenset()

    def group_of(self, model: ModelId) -> GroupSpec:
        """The group a model is in."""
        return self.groups.get(model, DEFAULT)

    def is_persistent(self, model: ModelId) -> bool:
        """Whether other groups leave it alone."""
        return model in self.pinned or self.group_of(model).persistent

    def eviction_for(self, target: ModelId, running: Sequence[ModelId]) -> tuple[ModelId, ...]:
        """The running models to stop before the target is loaded, in the order given."""
        group = self.group_of(target)
        return tuple(
            model
            for model in dict.fromkeys(running)
            if model != target and self._yields(model, group)
        )

    def likeness(self, target: ModelId) -> Hashable:
        """Its group, and how that behaves: one of a former configuration may go by the same name."""
        group = self.group_of(target)
        return group.id, group.swap, group.exclusive

    def _yields(self, model: ModelId, group: GroupSpec) -> bool:
        own = self.group_of(model)
        if own.id == group.id:
            return group.swap
        return group.exclusive and not self.is_persistent(model)
