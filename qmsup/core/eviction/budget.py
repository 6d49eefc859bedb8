"""The VRAM budget policy: the target is loaded beside what runs, and no more is stopped than makes it fit."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from qmsup.core.eviction.groups import GroupPolicy
from qmsup.ids import ModelId
from qmsup.units import MiB

_UNKNOWN = MiB(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetPolicy:
    """Takes the coldest models until the target fits.

    Attributes:
        needs: what each model takes when it is started now; 0 or absent = unknown.
        charges: what each model is charged while it runs, where that differs from `needs`.
        budget: what the operator allows for all models together.
        ceiling: what the card has room for right now, when a trusted reading says so. It only ever tightens.
        persistent: charged, never stopped.
        fallback: decides for a target of unknown size.
    """

    name: ClassVar[str] = "budget"
    needs: Mapping[ModelId, MiB]
    charges: Mapping[ModelId, MiB]
    budget: MiB
    ceiling: MiB | None = None
    persistent: frozenset[ModelId] = frozenset()
    fallback: GroupPolicy

    @property
    def limit(self) -> MiB:
        """What may be used at this moment."""
        return self.budget if self.ceiling is None else min(self.budget, self.ceiling)

    def charge_of(self, model: ModelId) -> MiB:
        """What a running model is charged; 0 = unknown."""
        charge = self.charges.get(model)
        return self.needs.get(model, _UNKNOWN) if charge is None else charge

    def eviction_for(self, target: ModelId, running: Sequence[ModelId]) -> tuple[ModelId, ...]:
        """The running models to stop: those of unknown size first, then the coldest until the rest fits.

        Args:
            target: the model to load.
            running: what is resident, coldest first.
        """
        need = self.needs.get(target, _UNKNOWN)
        if need == _UNKNOWN:
            return self.fallback.eviction_for(target, running)
        total = need
        unknown: list[ModelId] = []
        candidates: list[tuple[ModelId, MiB]] = []
        for model in dict.fromkeys(running):
            if model == target:
                continue
            charge = self.charge_of(model)
            if model in self.persistent:
                total = MiB(total + charge)
            elif charge == _UNKNOWN:
                unknown.append(model)
            else:
                total = MiB(total + charge)
                candidates.append((model, charge))
        return (*unknown, *coldest(candidates, MiB(total - self.limit)))

    def likeness(self, target: ModelId) -> Hashable:
        """What it takes; where that is unknown, what counts instead."""
        return self.needs.get(target, _UNKNOWN) or self.fallback.likeness(target)


def coldest(candidates: Iterable[tuple[ModelId, MiB]], excess: MiB) -> list[ModelId]:
    """As many from the cold end as free the excess; all of them where that is not enough."""
    taken: list[ModelId] = []
    for model, charge in candidates:
        if excess <= 0:
            break
        taken.append(model)
        excess = MiB(excess - charge)
    return taken
