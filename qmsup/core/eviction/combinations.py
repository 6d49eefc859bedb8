"""The best of many combinations of models, found without listing them.

An expression may stand for a hundred thousand combinations, or more than could ever be listed; what matters of one is
only which running models it holds. So a part of an expression is reduced, from the leaves up, to its few finds: sets
of running models it can keep, each with what they are worth and the place of the first combination that keeps them.
Of two finds the better one suffices wherever both lead to the same end, and they differ in their ends only by models
that stand elsewhere in the expression too (`live`): whoever is worth more without counting on those wins. That is
exact, ties by place included. It is quick because few models run at once; what does not run is not looked at.
"""

from collections.abc import Iterable, Mapping
from math import prod
from typing import NamedTuple

from qmsup.ids import ModelId
from qmsup.spec import AllOf, AnyOf, Expression


class _Part(NamedTuple):
    """A part of an expression.

    Attributes:
        models: those it names, a bit each.
        size: how many combinations it stands for, counted with repetitions.
        is_choice: its combinations are those of one of its parts; else one of each part together.
        parts: empty for a single model.
    """

    models: int
    size: int = 1
    is_choice: bool = False
    parts: tuple["_Part", ...] = ()


class _Find(NamedTuple):
    """The first combination that keeps these models.

    Attributes:
        kept: a bit each.
        worth: theirs together.
        place: how many combinations of the same part come before it.
    """

    kept: int
    worth: int
    place: int


_NOTHING = _Find(0, 0, 0)


class Combinations:
    """The combinations of several expressions, in their order: those of the first one first."""

    __slots__ = ("_bits", "_whole")

    def __init__(self, expressions: Iterable[Expression]) -> None:
        self._bits: dict[ModelId, int] = {}
        self._whole = self._any(tuple(expressions), {})

    def __contains__(self, model: object) -> bool:
        """Whether any combination holds this model."""
        return model in self._bits

    def best_beside(self, target: ModelId, worth: Mapping[ModelId, int]) -> frozenset[ModelId]:
        """The models worth most that one combination holds together with the target; the earliest one of equals.

        Args:
            target: a model that some combination holds.
            worth: the models to choose from, without the target; each is worth more than 0.
        """
        known = {model: self._bits[model] for model in worth if model in self._bits}
        worths = {bit: worth[model] for model, bit in known.items()}
        # Worth more than all others together: a combination that holds the target beats each that does not.
        worths[self._bits[target]] = sum(worths.values()) + 1
        best = _Search(worths).best(self._whole)
        return frozenset(model for model, bit in known.items() if best.kept & bit)

    def _part(self, expression: Expression, seen: dict[int, _Part]) -> _Part:
        """Compile a part; one that is shared is compiled once."""
        found = seen.get(id(expression))
        if found is None:
            found = seen[id(expression)] = self._compiled(expression, seen)
        return found

    def _compiled(self, expression: Expression, seen: dict[int, _Part]) -> _Part:
        match expression:
            case AnyOf(parts):
                return self._any(parts, seen)
            case AllOf(parts):
                return self._all(parts, seen)
            case _:
                return _Part(models=self._bits.setdefault(expression, 1 << len(self._bits)))

    def _any(self, expressions: tuple[Expression, ...], seen: dict[int, _Part]) -> _Part:
        parts = tuple([self._part(expression, seen) for expression in expressions])
        return _joined(parts, sum(part.size for part in parts), is_choice=True)

    def _all(self, expressions: tuple[Expression, ...], seen: dict[int, _Part]) -> _Part:
        parts = tuple([self._part(expression, seen) for expression in expressions])
        return _joined(parts, prod([part.size for part in parts]), is_choice=False)


def _joined(parts: tuple[_Part, ...], size: int, *, is_choice: bool) -> _Part:
    models = 0
    for part in parts:
        models |= part.models
    return _Part(models=models, size=size, is_choice=is_choice, parts=parts)


class _Search:
    """One question: these models are worth so much, which combination is worth most?"""

    def __init__(self, worths: Mapping[int, int]) -> None:
        self._worths = worths
        self._asked = sum(worths)
        self._known: dict[int, int] = {}

    def best(self, whole: _Part) -> _Find:
        """The find that is worth most; the first of equals."""
        (find,) = self._finds(whole, 0)
        return find

    def _finds(self, part: _Part, live: int) -> list[_Find]:
        """The finds of a part that may matter.

        Args:
            part: one that names a model that is asked about.
            live: models that stand elsewhere too, so that finds with and without them may come to the same end.
        """
        models = part.models & self._asked
        if not part.parts:
            return [_Find(models, self._worth(models), 0)]
        live &= models
        return self._of_any(part.parts, live) if part.is_choice else self._of_all(part.parts, live)

    def _of_any(self, parts: tuple[_Part, ...], live: int) -> list[_Find]:
        best: dict[int, _Find] = {}
        before = 0
        asked = self._asked
        for part in parts:
            if part.models & asked:
                for kept, worth, place in self._finds(part, live):
                    _offer(best, _Find(kept, worth, before + place), live)
            elif 0 not in best:
                best[0] = _Find(0, 0, before)
            before += part.size
        return self._pruned(best, live)

    def _of_all(self, parts: tuple[_Part, ...], live: int) -> list[_Find]:
        after = _named_after(parts)
        finds = [_NOTHING]
        before = 0
        for part, later in zip(parts, after, strict=True):
            if part.models & self._asked:
                added = self._finds(part, live | before | later)
                finds = self._together(finds, added, part.size, live | later)
                before |= part.models
            else:
                finds = [_Find(kept, worth, place * part.size) for kept, worth, place in finds]
        return finds

    def _together(
        self, finds: list[_Find], added: list[_Find], size: int, live: int
    ) -> list[_Find]:
        """One of each; `size` is how many combinations the added part stands for."""
        best: dict[int, _Find] = {}
        for one in finds:
            for other in added:
                worth = one.worth + other.worth - self._worth(one.kept & other.kept)
                place = one.place * size + other.place
                _offer(best, _Find(one.kept | other.kept, worth, place), live)
        return self._pruned(best, live)

    def _pruned(self, best: dict[int, _Find], live: int) -> list[_Find]:
        """Without the finds that another one beats whatever else is kept beside them."""
        if len(best) == 1:
            return [*best.values()]
        kept: list[_Find] = []
        for find in sorted(best.values(), key=_goodness):
            if not any(self._beats(other, find, live) for other in kept):
                kept.append(find)
        return kept

    def _beats(self, one: _Find, other: _Find, live: int) -> bool:
        # At worst, all that this one alone has of the live models is added to the other one later.
        sure = one.worth - self._worth(one.kept & live & ~other.kept)
        return sure > other.worth or (sure == other.worth and one.place < other.place)

    def _worth(self, models: int) -> int:
        """What these models are worth together."""
        known = self._known.get(models)
        if known is None:
            known = self._known[models] = sum(w for bit, w in self._worths.items() if bit & models)
        return known


def _named_after(parts: tuple[_Part, ...]) -> list[int]:
    """For each part, the models that parts after it name."""
    after = [0]
    for part in reversed(parts[1:]):
        after.append(after[-1] | part.models)
    return after[::-1]


def _offer(best: dict[int, _Find], find: _Find, live: int) -> None:
    """Keep a find unless there is a better one with the same live models."""
    key = find.kept & live
    rival = best.get(key)
    if rival is None or _goodness(find) < _goodness(rival):
        best[key] = find


def _goodness(find: _Find) -> tuple[int, int]:
    return -find.worth, find.place
