"""The search is held against a list of every combination: the same answer, ties included."""

from itertools import product
from math import prod

import hypothesis.strategies as st
import pytest
from hypothesis import event, given

from qmsup.core.eviction.combinations import Combinations
from qmsup.ids import ModelId
from qmsup.spec import AllOf, AnyOf, Expression

MODELS = [ModelId(name) for name in "abcdefg"]
MOST_LISTED = 3000


def together(*parts: Expression | str) -> AllOf:
    return AllOf(tuple(ModelId(p) if isinstance(p, str) else p for p in parts))


def one_of(*parts: Expression | str) -> AnyOf:
    return AnyOf(tuple(ModelId(p) if isinstance(p, str) else p for p in parts))


def count(expression: Expression) -> int:
    match expression:
        case AnyOf(parts):
            return sum(count(part) for part in parts)
        case AllOf(parts):
            return prod(count(part) for part in parts)
        case _:
            return 1


def listed(expression: Expression) -> list[frozenset[ModelId]]:
    match expression:
        case AnyOf(parts):
            return [combination for part in parts for combination in listed(part)]
        case AllOf(parts):
            chosen = product(*(listed(part) for part in parts))
            return [frozenset[ModelId]().union(*choice) for choice in chosen]
        case _:
            return [frozenset({expression})]


def best_of_list(
    sets: list[Expression], target: ModelId, worth: dict[ModelId, int]
) -> frozenset[ModelId]:
    holding = [c for part in sets for c in listed(part) if target in c]
    return max(holding, key=lambda c: sum(w for m, w in worth.items() if m in c)) & worth.keys()


def joined(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(parts, min_size=1, max_size=4).map(tuple)
    return several.map(AllOf) | several.map(AnyOf)


names: st.SearchStrategy[Expression] = st.sampled_from(MODELS)
expressions = st.recursive(names, joined, max_leaves=14)


@given(
    sets=st.lists(expressions, min_size=1, max_size=3),
    worth=st.dictionaries(st.sampled_from(MODELS), st.integers(1, 3)),
    target=st.sampled_from(MODELS),
)
def test_it_finds_what_a_list_of_all_would(
    sets: list[Expression], worth: dict[ModelId, int], target: ModelId
) -> None:
    if sum(count(part) for part in sets) > MOST_LISTED:
        return
    worth.pop(target, None)
    combinations = Combinations(sets)

    is_held = any(target in combination for part in sets for combination in listed(part))

    assert (target in combinations) is is_held
    if is_held:
        event("held")
        assert combinations.best_beside(target, worth) == best_of_list(sets, target, worth)


choices = st.lists(names, min_size=2, max_size=4).map(lambda parts: AnyOf(tuple(parts)))


@given(
    factors=st.lists(choices, min_size=2, max_size=5),
    worth=st.dictionaries(st.sampled_from(MODELS), st.integers(1, 2), min_size=4),
)
def test_so_it_does_where_choices_name_the_same_models(
    factors: list[Expression], worth: dict[ModelId, int]
) -> None:
    target = ModelId("z")
    sets: list[Expression] = [together(target, *factors), together(*reversed(factors), target)]

    found = Combinations(sets).best_beside(target, worth)

    assert found == best_of_list(sets, target, worth)


# expression, worth, kept beside t
CASES: dict[str, tuple[Expression, str, str]] = {
    "alone": (ModelId("t"), "a1", ""),
    "a model twice is worth what it is worth once": (
        one_of(together("t", "a", "a"), together("t", "b")), "a2 b3", "b"),
    "a choice may fall on what stands beside it, for nothing": (
        together("t", one_of("a", "b"), one_of("a", "c")), "a3 b1 c2", "a c"),
    "of equals in a later choice the first": (
        together("t", one_of("a", together("a", "b")), one_of("c", "d"), "b"), "a1 b1 c1 d1", "a b c"),
    "a worse beginning may lead to a better end": (
        together(one_of("a", "b"), one_of(together("a", "t"), together("c", "t"))), "a5 b1 c5", "a c"),
    "a choice without the target is no choice": (
        one_of(together("a", "b"), together("t", "c")), "a9 b9 c1", "c"),
    "models of no combination count for nothing": (together("t", "a"), "a1 x9", "a"),
}  # fmt: skip


@pytest.mark.parametrize(("expression", "worths", "kept"), CASES.values(), ids=CASES.keys())
def test_what_is_kept(expression: Expression, worths: str, kept: str) -> None:
    worth = {ModelId(word[0]): int(word[1:]) for word in worths.split()}

    found = Combinations([expression]).best_beside(ModelId("t"), worth)

    assert " ".join(sorted(found)) == kept


def test_more_combinations_than_could_be_listed_are_no_trouble() -> None:
    factors = [one_of(*(f"m{n}-{k}" for k in range(10))) for n in range(30)]
    worth = {ModelId(f"m{n}-{k}"): k for n in range(30) for k in range(1, 9)}

    found = Combinations([together(*factors)]).best_beside(ModelId("m0-9"), worth)

    assert found == {f"m{n}-8" for n in range(1, 30)}


def test_a_part_that_is_used_often_is_one() -> None:
    any_of_ten = one_of(*(f"m{n}" for n in range(10)))
    five = AllOf((any_of_ten,) * 5)
    worth = {ModelId(f"m{n}"): n for n in (2, 3, 4, 5, 6, 7)}

    found = Combinations([five]).best_beside(ModelId("m0"), worth)

    assert found == {"m4", "m5", "m6", "m7"}
