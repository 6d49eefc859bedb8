"""The VRAM budget policy: the target is loaded beside what runs, and no more is stopped than makes it fit."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from qmsup.core.eviction.groups import GroupPolicy
from qmsup.ids import ModelId
from qmsup.units import MiB

_UNKNOWN = MiB(0)
_MOST_REMEMBERED = 64
"""Sets of residents: a box asks for many targets beside the same few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Residents:
    """What runs beside a target.

    Attributes:
        total: charged for all of it.
        unknown: nobody knows what these take.
        known: what may be stopped, coldest first, with what each is charged.
    """

    total: MiB
    unknown: tuple[ModelId, ...]
    known: tuple[tuple[ModelId, MiB], ...]


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
    _seen: dict[tuple[ModelId, ...], _Residents] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """What ran before, added up: it is the same for all targets."""

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
        beside = tuple(running)
        if target in beside:
            beside = tuple(model for model in beside if model != target)
        residents = self._charged(beside)
        excess = MiB(need + residents.total - self.limit)
        return (*residents.unknown, *coldest(residents.known, excess))

    def _charged(self, running: tuple[ModelId, ...]) -> _Residents:
        residents = self._seen.get(running)
        if residents is None:
            if len(self._seen) >= _MOST_REMEMBERED:
                self._seen.clear()
            residents = self._seen[running] = self._charge(running)
        return residents

    def _charge(self, running: tuple[ModelId, ...]) -> _Residents:
        total = 0
        unknown: list[ModelId] = []
        known: list[tuple[ModelId, MiB]] = []
        for model in dict.fromkeys(running):
            charge = self.charge_of(model)
            total += charge
            if model in self.persistent:
                continue
            if charge == _UNKNOWN:
                unknown.append(model)
            else:
                known.append((model, charge))
        return _Residents(total=MiB(total), unknown=tuple(unknown), known=tuple(known))

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
