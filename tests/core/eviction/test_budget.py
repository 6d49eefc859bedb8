import pytest

from qmsup.core.eviction.budget import BudgetPolicy
from qmsup.core.eviction.groups import GroupPolicy
from qmsup.ids import ModelId
from qmsup.units import MiB
from tests.support.scheduling import group

# budget, ceiling, running (cold → hot, `!` = persistent, `?` = unknown), load, evict
CASES = {
    "both fit": (24, None, "a6 b5", "c4", ""),
    "the coldest goes, and no more": (12, None, "a5 b5", "c5", "a"),
    "what can never fit takes everybody": (8, None, "a4 b4", "d10", "a b"),
    "a persistent model is charged and stays": (12, None, "p4! a5", "c5", "a"),
    "a persistent model is never a victim": (8, None, "p8!", "c5", ""),
    "a model of unknown size always goes": (24, None, "u? a4", "c4", "u"),
    "a target of unknown size asks the groups": (24, None, "a4 b4", "x?", "a b"),
    "a ceiling tightens": (24, 10, "a6 b5", "c4", "a"),
    "a ceiling never loosens": (12, 48, "a5 b5", "c5", "a"),
    "an exact fit fits": (15, None, "a5 b5", "c5", ""),
    "the unknown come first, then the coldest": (10, None, "a5 u? b5 v?", "c5", "u v a"),
    "a persistent model of unknown size stays": (10, None, "p?! a5", "c5", ""),
    "nothing runs": (4, None, "", "c5", ""),
    "who runs twice is charged once": (10, None, "a5 a5", "c5", ""),
    "the target is not charged twice": (10, None, "c5 a5", "c5", ""),
}


def size(text: str) -> int:
    digits = text[1:].rstrip("!")
    return 0 if digits == "?" else int(digits)


@pytest.mark.parametrize(
    ("budget", "ceiling", "running", "load", "evicts"), CASES.values(), ids=CASES.keys()
)
def test_who_makes_room(
    budget: int, ceiling: int | None, running: str, load: str, evicts: str
) -> None:
    words = [*running.split(), load]
    policy = BudgetPolicy(
        needs={ModelId(word[0]): MiB(size(word)) for word in words},
        charges={},
        budget=MiB(budget),
        ceiling=None if ceiling is None else MiB(ceiling),
        persistent=frozenset(ModelId(word[0]) for word in words if word.endswith("!")),
        fallback=GroupPolicy(groups={}),
    )

    found = policy.eviction_for(ModelId(load[0]), [ModelId(w[0]) for w in running.split()])

    assert " ".join(found) == evicts


def test_a_resident_is_charged_by_what_it_runs_with() -> None:
    policy = BudgetPolicy(
        needs={ModelId("a"): MiB(2), ModelId("b"): MiB(5)},
        charges={ModelId("a"): MiB(9)},
        budget=MiB(10),
        fallback=GroupPolicy(groups={}),
    )

    assert policy.eviction_for(ModelId("b"), [ModelId("a")]) == ("a",)
    assert policy.eviction_for(ModelId("a"), [ModelId("b")]) == ()


def test_answers_are_the_same_whatever_ran_before() -> None:
    def fresh() -> BudgetPolicy:
        needs = {ModelId(f"m{n}"): MiB(n % 7 + 1) for n in range(100)}
        return BudgetPolicy(needs=needs, charges={}, budget=MiB(9), fallback=GroupPolicy(groups={}))

    policy = fresh()
    runs = [tuple(ModelId(f"m{n}") for n in (first, first + 1)) for first in range(98)]

    for running in runs * 2:
        assert policy.eviction_for(ModelId("m99"), running) == fresh().eviction_for(
            ModelId("m99"), running
        )


def test_alike_are_those_of_one_size_and_of_unknown_size_those_of_one_group() -> None:
    first, second = group("g", "a b", swap=False), group("h", "c", exclusive=False)
    policy = BudgetPolicy(
        needs={ModelId("x"): MiB(5), ModelId("y"): MiB(5), ModelId("z"): MiB(6)},
        charges={},
        budget=MiB(10),
        fallback=GroupPolicy(
            groups={ModelId("a"): first, ModelId("b"): first, ModelId("c"): second}
        ),
    )
    likeness = {model: policy.likeness(ModelId(model)) for model in "abcxyz"}

    assert likeness["x"] == likeness["y"] != likeness["z"]
    assert likeness["a"] == likeness["b"] != likeness["c"]
    assert likeness["x"] not in (likeness["a"], likeness["c"])
