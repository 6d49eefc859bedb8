"""Which policy a configuration asks for, told by what it decides."""

import pytest

from qmsup.core.eviction.policy import Actuals, members_of, policy_for
from qmsup.ids import ModelId
from qmsup.spec import AllOf, MatrixSpec, Pool
from qmsup.units import MiB
from tests.support.scheduling import group, spec_of

A, B, C, D = (ModelId(name) for name in "abcd")
SIZES = {"a": 6, "b": 5, "c": 4}
IN_RAM = group("cpu", "c d", pool=Pool.RAM)


def test_without_a_budget_groups_decide() -> None:
    policy = policy_for(spec_of("a b c", groups=(group("g", "a b", swap=False),)))

    assert policy.name == "groups"
    assert policy.eviction_for(A, [B, C]) == (C,)


@pytest.mark.parametrize("budget", [None, MiB(0)])
def test_a_budget_of_nothing_is_none(budget: MiB | None) -> None:
    assert policy_for(spec_of("a", vram_budget=budget)).name == "groups"


def test_a_budget_decides_by_size_and_spares_the_persistent() -> None:
    stays = group("stays", "b", persistent=True)
    policy = policy_for(spec_of("a b c", sizes=SIZES, vram_budget=MiB(11), groups=(stays,)))

    assert policy.name == "budget"
    assert policy.eviction_for(A, [B, C]) == (C,)


def test_what_runs_by_older_arguments_is_charged_by_those() -> None:
    policy = policy_for(
        spec_of("a b", sizes=SIZES, vram_budget=MiB(11)), Actuals(charges={B: MiB(9)})
    )

    assert policy.eviction_for(A, [B]) == (B,)


def test_a_ceiling_tightens_the_budget() -> None:
    policy = policy_for(spec_of("a b", sizes=SIZES, vram_budget=MiB(11)), Actuals(ceiling=MiB(10)))

    assert policy.eviction_for(A, [B]) == (B,)


def test_a_model_that_is_no_longer_named_stays_in_its_group() -> None:
    stays = group("stays", "x", persistent=True)
    gone = {ModelId("x"): stays}

    assert policy_for(spec_of("a"), Actuals(groups=gone)).eviction_for(A, [ModelId("x")]) == ()


def test_a_group_in_ram_makes_two_pools() -> None:
    spec = spec_of("a b c d", sizes=SIZES, vram_budget=MiB(11), groups=(IN_RAM,))
    policy = policy_for(spec)

    assert policy.name == "pools"
    assert policy.eviction_for(A, [B, C, D]) == ()
    assert policy.eviction_for(C, [A, B, D]) == (D,)


def test_the_ram_budget_and_what_runs_by_older_arguments_count_in_ram() -> None:
    spec = spec_of("a c d", rams={"c": 4, "d": 4, "a": 2}, ram_budget=MiB(10), groups=(IN_RAM,))

    assert policy_for(spec).eviction_for(C, [A, D]) == ()
    assert policy_for(spec, Actuals(ram_charges={D: MiB(5)})).eviction_for(C, [A, D]) == (D,)


def test_a_ceiling_of_the_ram_tightens_its_budget() -> None:
    spec = spec_of("c d", rams={"c": 4, "d": 4}, ram_budget=MiB(8), groups=(IN_RAM,))

    assert policy_for(spec, Actuals(ram_ceiling=MiB(7))).eviction_for(C, [D]) == (D,)


def test_the_persistent_stay_in_ram_too() -> None:
    stays = group("stays", "d", persistent=True, pool=Pool.RAM)
    other = group("cpu", "c", pool=Pool.RAM)
    spec = spec_of("c d", rams={"c": 4, "d": 4}, ram_budget=MiB(5), groups=(stays, other))

    assert policy_for(spec).eviction_for(C, [D]) == ()
    assert policy_for(spec).eviction_for(D, [C]) == (C,)


def test_a_ram_budget_without_a_pool_changes_nothing() -> None:
    assert policy_for(spec_of("a", ram_budget=MiB(5))).name == "groups"


def test_a_matrix_decides_alone() -> None:
    matrix = MatrixSpec(sets={"one": AllOf((A, B)), "two": AllOf((A, C))}, costs={C: 5})
    policy = policy_for(spec_of("a b c", sizes=SIZES, vram_budget=MiB(4), matrix=matrix))

    assert policy.name == "matrix"
    assert policy.eviction_for(A, [B, C]) == (B,)


def test_the_first_group_that_names_a_model_counts() -> None:
    first, second = group("first", "a"), group("second", "a b")

    assert members_of(spec_of("a b", groups=(first, second))) == {A: first, B: second}
