"""The RAM pool: models that run on the CPU, and the share that GPU models offload, against one budget."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from qmsup.core.eviction.budget import coldest
from qmsup.core.eviction.groups import GroupPolicy
from qmsup.ids import ModelId
from qmsup.units import MiB

_UNKNOWN = MiB(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RamPolicy:
    """Charges every resident, and stops only what is in the pool: no GPU model ever makes room in RAM.

    Attributes:
        pool: the models that are in it.
        needs: the RAM each model takes when it is started now; 0 or absent = unknown in the pool, none outside.
        charges: the RAM each model is charged while it runs, where that differs from `needs`.
        budget: what the operator allows for all models together; None = nothing is said.
        ceiling: what the machine has for them right now, where that was read. It only ever tightens.
        persistent: charged, never stopped.
        fallback: decides, among the pool alone, where no budget can.
    """

    name: ClassVar[str] = "ram"
    pool: frozenset[ModelId]
    needs: Mapping[ModelId, MiB]
    charges: Mapping[ModelId, MiB]
    budget: MiB | None = None
    ceiling: MiB | None = None
    persistent: frozenset[ModelId] = frozenset()
    fallback: GroupPolicy

    @property
    def limit(self) -> MiB | None:
        """What may be used at this moment; None = nothing is held to a budget."""
        if self.budget is None or self.ceiling is None:
            return self.budget
        return min(self.budget, self.ceiling)

    def need_of(self, model: ModelId) -> MiB:
        """What a model takes when it is started; 0 = unknown, or nothing."""
        return self.needs.get(model, _UNKNOWN)

    def charge_of(self, model: ModelId) -> MiB:
        """What a running model is charged; 0 = unknown, or nothing."""
        charge = self.charges.get(model)
        return self.needs.get(model, _UNKNOWN) if charge is None else charge

    def eviction_for(self, target: ModelId, running: Sequence[ModelId]) -> tuple[ModelId, ...]:
        """The models of the pool to stop for one of the pool: those of unknown size, then the coldest.

        Args:
            target: the model to load.
            running: what is resident in RAM or on the GPU, coldest first.
        """
        need = self.need_of(target)
        residents = _beside(target, running)
        limit = self.limit
        if limit is None or need == _UNKNOWN:
            in_pool = [model for model in residents if model in self.pool]
            return self.fallback.eviction_for(target, in_pool)
        return self._make_room(residents, self._excess(need, residents, limit))

    def likeness(self, target: ModelId) -> Hashable:
        """What it takes; where that is unknown, or nothing is held to a budget, what counts instead."""
        return self.need_of(target), self.fallback.likeness(target)

    def spill_for(self, target: ModelId, running: Sequence[ModelId]) -> tuple[ModelId, ...]:
        """The models of the pool to stop for what a GPU model offloads; none while that fits.

        Args:
            target: the GPU model to load.
            running: what stays resident of both pools, coldest first.
        """
        need = self.need_of(target)
        residents = _beside(target, running)
        limit = self.limit
        if limit is None or need == _UNKNOWN:
            return ()
        excess = self._excess(need, residents, limit)
        return self._make_room(residents, excess) if excess > 0 else ()

    def _excess(self, need: MiB, residents: Sequence[ModelId], limit: MiB) -> MiB:
        return MiB(need + sum(self.charge_of(model) for model in residents) - limit)

    def _make_room(self, residents: Sequence[ModelId], excess: MiB) -> tuple[ModelId, ...]:
        victims = [m for m in residents if m in self.pool and m not in self.persistent]
        charged = [(model, self.charge_of(model)) for model in victims]
        unknown = [model for model, charge in charged if charge == _UNKNOWN]
        known = [(model, charge) for model, charge in charged if charge != _UNKNOWN]
        return (*unknown, *coldest(known, excess))


def _beside(target: ModelId, running: Sequence[ModelId]) -> tuple[ModelId, ...]:
    return tuple(model for model in dict.fromkeys(running) if model != target)
