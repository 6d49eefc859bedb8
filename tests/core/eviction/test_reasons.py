"""The reasons that a person is told agree with what the policy does, and name its numbers."""

from collections.abc import Sequence

import pytest

from qmsup.core.eviction.policy import Actuals, EvictionPolicy, policy_for
from qmsup.core.eviction.reasons import reasons_for
from qmsup.ids import ModelId
from qmsup.spec import AllOf, AnyOf, MatrixSpec, Pool, Spec
from qmsup.units import MiB
from tests.support.scheduling import TablePolicy, group, spec_of

SIZES = {"a": 5000, "b": 6000, "c": 12288, "p": 4000}
BUDGET = spec_of(
    "a b c p u",
    sizes=SIZES,
    vram_budget=MiB(16384),
    groups=(group("kept", "p", persistent=True),),
)
POOLS = spec_of(
    "r1 r2 r3 r4 g1 g2 g3",
    sizes={"g1": 20, "g2": 4, "g3": 4},
    rams={"r1": 12, "r2": 10, "r3": 9, "g1": 6, "g2": 8},
    ram_budget=MiB(32),
    vram_budget=MiB(24),
    groups=(group("cpu", "r1 r2 r3 r4", pool=Pool.RAM),),
)


def reasons(policy: EvictionPolicy | Spec, target: str, running: str) -> tuple[str, ...]:
    if isinstance(policy, Spec):
        policy = policy_for(policy)
    residents: Sequence[ModelId] = [ModelId(model) for model in running.split()]
    told = reasons_for(policy, ModelId(target), residents)
    for victim in policy.eviction_for(ModelId(target), residents):
        assert any(victim in sentence for sentence in told), f"{victim} is not told of"
    return told


def test_a_budget_names_what_is_needed_used_and_freed() -> None:
    assert reasons(BUDGET, "c", "a b") == (
        "c needs 12 288 MiB; 11 000 MiB of 16 384 MiB VRAM are in use",
        "a goes: the coldest of those left, it frees 5 000 MiB",
        "b goes: the coldest of those left, it frees 6 000 MiB",
    )
    assert reasons(BUDGET, "b", "a")[1:] == ("b fits beside what runs",)


def test_what_stays_whatever_comes_is_told_and_so_is_what_does_not_help() -> None:
    assert reasons(BUDGET, "c", "p u a") == (
        "c needs 12 288 MiB; 9 000 MiB of 16 384 MiB VRAM are in use",
        "p stays: its group is persistent",
        "u goes: its size is not known, so nothing can be reckoned with it",
        "a goes: the coldest of those left, it frees 5 000 MiB",
    )
    pinned = policy_for(BUDGET, Actuals(pinned=frozenset({ModelId("a")})))
    assert reasons(pinned, "c", "a")[1:] == (
        "a stays: an operator has pinned it",
        "even so c is 904 MiB too large",
    )
    tight = policy_for(BUDGET, Actuals(ceiling=MiB(10000)))
    assert reasons(tight, "c", "a")[1:] == (
        "the card leaves 10 000 MiB of the budget of 16 384 MiB",
        "a goes: the coldest of those left, it frees 5 000 MiB",
        "even so c is 2 288 MiB too large",
    )
    assert reasons(tight, "c", "")[2:] == ("even so c is 2 288 MiB too large",)


def test_groups_say_which_rule_it_was() -> None:
    spec = spec_of(
        "a b c d", groups=(group("g", "a b"), group("open", "d", exclusive=False, swap=False))
    )

    assert reasons(spec, "a", "b") == ("b goes: it takes turns with a in group g",)
    assert reasons(spec, "a", "c") == ("c goes: a is in group g, which runs alone (exclusive)",)
    assert reasons(spec, "d", "a") == ("d is in group open: nothing that runs has to stop for it",)


def test_without_a_size_the_group_decides() -> None:
    assert reasons(BUDGET, "u", "a") == (
        "u has no known size (estVramGB), so its group decides",
        "a goes: it takes turns with u in group (default)",
    )


def test_a_matrix_says_what_holds_the_model() -> None:
    a, b, c = (ModelId(m) for m in "abc")
    matrix = MatrixSpec(sets={"one": AllOf((AnyOf((a, b)), c))})
    spec = spec_of("a b c x", matrix=matrix)

    assert reasons(spec, "c", "a") == ("the matrix lets c run beside what runs",)
    assert reasons(spec, "b", "a c") == (
        "a: outside the cheapest combination of the matrix that holds b",
    )
    assert reasons(spec, "x", "a c") == ("x is in no set of the matrix, so all go: a, c",)


def test_pools_are_told_apart() -> None:
    assert reasons(POOLS, "r3", "r1 r2 g1") == (
        "r3 needs 9 MiB; 28 MiB of 32 MiB RAM are in use",
        "r1 goes: the coldest of those left, it frees 12 MiB",
    )
    assert reasons(POOLS, "g2", "r1 r2 g1") == (
        "g2 needs 4 MiB; 20 MiB of 24 MiB VRAM are in use",
        "g2 fits beside what runs",
        "g2 offloads 8 MiB; 28 MiB of 32 MiB RAM are in use",
        "r1 goes: the coldest of those left, it frees 12 MiB",
    )
    assert reasons(POOLS, "g3", "r1")[1:] == ("g3 fits beside what runs",)


def test_what_the_machine_leaves_of_a_budget_is_told() -> None:
    tight = policy_for(POOLS, Actuals(ram_ceiling=MiB(20)))

    assert reasons(tight, "r3", "r1") == (
        "r3 needs 9 MiB; 12 MiB of 20 MiB RAM are in use",
        "the machine leaves 20 MiB of the budget of 32 MiB",
        "r1 goes: the coldest of those left, it frees 12 MiB",
    )
    assert reasons(tight, "g2", "r1 r2")[2:] == (
        "g2 offloads 8 MiB; 22 MiB of 20 MiB RAM are in use",
        "the machine leaves 20 MiB of the budget of 32 MiB",
        "r1 goes: the coldest of those left, it frees 12 MiB",
    )


@pytest.mark.parametrize(
    ("target", "why"), [("r4", "its estRamGB is not known"), ("r3", "there is no ramBudgetGB")]
)
def test_in_the_pool_the_group_decides_where_no_budget_can(target: str, why: str) -> None:
    spec = POOLS if target == "r4" else spec_of("r1 r3 g1", groups=POOLS.groups)

    head, *others = reasons(spec, target, "r1 g1")

    assert head == f"{target} is in the RAM pool and {why}, so its group decides"
    assert others == [f"r1 goes: it takes turns with {target} in group cpu"]


def test_a_policy_without_words_of_its_own_is_told_by_its_answer() -> None:
    assert reasons(TablePolicy(table={"a": "b"}), "a", "b") == ("the policy 'table' stops b",)
    assert reasons(TablePolicy(table={}), "a", "b") == ("the policy 'table' stops nothing",)
