"""Two pools, VRAM and RAM: a model is held to the budget of its own, and pays in RAM for what it offloads."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from qmsup.core.eviction.budget import BudgetPolicy
from qmsup.core.eviction.groups import GroupPolicy
from qmsup.core.eviction.ram import RamPolicy
from qmsup.ids import ModelId


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolsPolicy:
    """Loading a model of the RAM pool never stops a GPU model.

    A GPU model is decided among GPU models alone, so that a CPU model's VRAM of 0 is never taken for "unknown";
    then the RAM it offloads is charged on top.

    Attributes:
        gpu: decides among the models outside the RAM pool.
        ram: knows the pool, and decides inside it.
    """

    name: ClassVar[str] = "pools"
    gpu: BudgetPolicy | GroupPolicy
    ram: RamPolicy

    def eviction_for(self, target: ModelId, running: Sequence[ModelId]) -> tuple[ModelId, ...]:
        """The running models to stop: on the GPU first, then in RAM.

        Args:
            target: the model to load.
            running: what is resident in either pool, coldest first.
        """
        if target in self.ram.pool:
            return self.ram.eviction_for(target, running)
        on_gpu = self.gpu.eviction_for(target, [m for m in running if m not in self.ram.pool])
        gone = frozenset(on_gpu)
        staying = [model for model in running if model not in gone]
        return (*on_gpu, *self.ram.spill_for(target, staying))

    def likeness(self, target: ModelId) -> Hashable:
        """By its own pool; and on the GPU by what it offloads too."""
        if target in self.ram.pool:
            return "ram", self.ram.likeness(target)
        return "gpu", self.gpu.likeness(target), self.ram.need_of(target)
