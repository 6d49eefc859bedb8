"""`matrix:`: its short names and `+sets` filled in, so that what is left speaks of models alone."""

from dataclasses import dataclass
from math import prod

from qmsup.config.catalogues import Names
from qmsup.config.expressions import Joined, Tree, is_name, parse
from qmsup.config.problems import Problems, did_you_mean
from qmsup.config.shape import MatrixSection, Shape
from qmsup.errors import key_text
from qmsup.ids import ModelId
from qmsup.spec import AllOf, AnyOf, Expression, MatrixSpec

_EXAMPLE = "sets: {all: (chat | code) & embed}"
_MAX_NAMES = 250_000
_MAX_DEPTH = 100
_MAX_TRAIL = 32
_MAX_COMBINATIONS = 10**30


def resolve_matrix(shape: Shape, names: Names, problems: Problems) -> MatrixSpec | None:
    """The matrix; None when there is none. What is wrong with it is in `problems`."""
    section = shape.matrix
    if section is None:
        return None
    if shape.groups:
        text = "cannot stand beside groups: both say what makes room for what; keep one of them"
        problems.add(("matrix",), text)
        return None
    if not section.sets:
        problems.follow(("matrix", "sets"), f"is missing; write for example `{_EXAMPLE}`")
    known = _Models(section, names, problems)
    sets = _Sets(section, known, problems)
    return MatrixSpec(sets=sets.all(), costs=known.costs())


class _Models:
    """The names that stand for models: short ones, and the models' own."""

    def __init__(self, section: MatrixSection, names: Names, problems: Problems) -> None:
        self._section = section
        self._names = names
        self._problems = problems
        for short, model in section.vars.items():
            if not is_name(short):
                text = "a name in a set has no blanks and none of & | ( ) +; rename it"
                problems.add(("matrix", "vars", short), text)
            names.check(model, ("matrix", "vars", short))

    def named(self, name: str) -> ModelId | None:
        """The model that a name stands for; None = no model is called so."""
        if name in self._section.vars:
            return ModelId(self._section.vars[name])
        return ModelId(name) if self._names.is_model(name) else None

    def unknown(self, name: str) -> str:
        """What to tell about a name that stands for no model."""
        return self._names.unknown(name, short=self._section.vars)

    def costs(self) -> dict[ModelId, int]:
        """What stopping each model costs, where something is said."""
        costs: dict[ModelId, int] = {}
        for name, cost in self._section.evict_costs.items():
            model = self.named(name)
            if model is None:
                self._problems.follow(("matrix", "evict_costs", name), self.unknown(name))
            elif model in costs:
                text = f"model {key_text(model)} has its cost already, under another name; keep one"
                self._problems.follow(("matrix", "evict_costs", name), text)
            else:
                costs[model] = cost
        return costs


@dataclass(frozen=True, slots=True)
class _Filled:
    """An expression with its names filled in, and how large that makes it.

    Attributes:
        combinations: how many it stands for, counted with repetitions.
        names: how many it is written with once its sets are filled in.
    """

    expression: Expression
    combinations: int = 1
    names: int = 1
    depth: int = 1


class _Sets:
    """Each set is filled in once; one that cannot be is noted once, and those that lean on it stay unsaid."""

    def __init__(self, section: MatrixSection, models: _Models, problems: Problems) -> None:
        self._sets = section.sets
        self._models = models
        self._problems = problems
        self._known: dict[str, _Filled | None] = {}

    def all(self) -> dict[str, Expression]:
        """Every set that is right, in the order of the file."""
        filled = {name: self._set(name, ()) for name in self._sets}
        return {name: one.expression for name, one in filled.items() if one is not None}

    def _set(self, name: str, trail: tuple[str, ...]) -> _Filled | None:
        if name not in self._known:
            tree = self._parsed(name)
            self._known[name] = None if tree is None else self._fill(tree, (*trail, name))
        return self._known[name]

    def _parsed(self, name: str) -> Tree | None:
        try:
            return parse(self._sets[name])
        except ValueError as error:
            self._wrong(name, str(error))
            return None

    def _fill(self, tree: Tree, trail: tuple[str, ...]) -> _Filled | None:
        """An expression of the set at the end of the trail; None if something in it is wrong."""
        if isinstance(tree, Joined):
            parts = [self._fill(part, trail) for part in tree.parts]
            right = [part for part in parts if part is not None]
            return self._joined(tree, right, trail[-1]) if len(right) == len(parts) else None
        if tree.is_set:
            return self._other(tree.text, trail)
        model = self._models.named(tree.text)
        if model is None:
            self._wrong(trail[-1], self._models.unknown(tree.text))
            return None
        return _Filled(model)

    def _other(self, name: str, trail: tuple[str, ...]) -> _Filled | None:
        if name not in self._sets:
            if not self._problems.touch(("matrix", "sets", name)):
                hint = did_you_mean(name, self._sets) or "; define it, or remove it here"
                self._wrong(trail[-1], f"there is no set {key_text(name)}{hint}")
        elif name in trail:
            circle = " → ".join(key_text(one) for one in (*trail[trail.index(name) :], name))
            self._wrong(name, f"refers to itself ({circle}); break the circle")
        elif len(trail) > _MAX_TRAIL:
            text = f"leads through more than {_MAX_TRAIL} other sets; write it flatter"
            self._wrong(trail[0], text)
        else:
            return self._set(name, trail)
        return None

    def _joined(self, tree: Joined, parts: list[_Filled], name: str) -> _Filled | None:
        count = prod if tree.are_together else sum
        combinations = count(part.combinations for part in parts)
        names = sum(part.names for part in parts)
        depth = 1 + max(part.depth for part in parts)
        if combinations > _MAX_COMBINATIONS or names > _MAX_NAMES or depth > _MAX_DEPTH:
            self._wrong(name, "grows too large with its sets filled in; write less, or flatter")
            return None
        kind = AllOf if tree.are_together else AnyOf
        expression = kind(tuple(part.expression for part in parts))
        return _Filled(expression, combinations, names, depth)

    def _wrong(self, name: str, text: str) -> None:
        self._problems.add(("matrix", "sets", name), text)
