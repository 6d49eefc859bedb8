"""The matrix policy: the operator says which models may run together, and what stopping each of them costs."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from qmsup.core.eviction.combinations import Combinations
from qmsup.ids import ModelId

_USUAL_COST = 1
_MOST_REMEMBERED = 1024
"""Answers; a box asks the same few again and again, once for each model that is waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixPolicy:
    """Of all combinations that hold the target, the one that is cheapest to come to; the first of equals.

    Attributes:
        combinations: what may run together; so may a part of each.
        costs: what stopping a model costs; 1 where nothing is said.
    """

    name: ClassVar[str] = "matrix"
    combinations: Combinations
    costs: Mapping[ModelId, int] = field(default_factory=dict)
    _kept: dict[tuple[ModelId, frozenset[ModelId]], frozenset[ModelId]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Answers given before: what runs decides, whatever its order."""

    def eviction_for(self, target: ModelId, running: Sequence[ModelId]) -> tuple[ModelId, ...]:
        """The running models outside that combination, in the order given; all, if none holds the target.

        Args:
            target: the model to load. If it is running, nothing is stopped for it.
            running: what is resident.
        """
        if target in running:
            return ()
        residents = tuple(dict.fromkeys(running))
        if target not in self.combinations:
            return residents
        kept = self._kept_beside(target, frozenset(residents))
        return tuple(model for model in residents if model not in kept)

    def likeness(self, target: ModelId) -> Hashable:
        """Each is in combinations of its own."""
        return target

    def _kept_beside(self, target: ModelId, residents: frozenset[ModelId]) -> frozenset[ModelId]:
        kept = self._kept.get((target, residents))
        if kept is None:
            costs = {model: self.costs.get(model, _USUAL_COST) for model in residents}
            kept = self.combinations.best_beside(target, costs)
            if len(self._kept) >= _MOST_REMEMBERED:
                self._kept.clear()
            self._kept[target, residents] = kept
        return kept
