"""Which policy a configuration asks for, and what it is told."""

from dataclasses import replace

from qmsup.core.eviction.budget import BudgetPolicy
from qmsup.core.eviction.groups import GroupPolicy
from qmsup.core.eviction.policy import members_of, policy_for
from qmsup.ids import ModelId
from qmsup.units import MiB
from tests.support.scheduling import group, spec_of

A, B, P = ModelId("a"), ModelId("b"), ModelId("p")
SIZES = {"a": 6, "b": 5, "p": 3}
STAYS = group("stays", "p", persistent=True)
SPEC = spec_of("a b p", sizes=SIZES, groups=(STAYS,), vram_budget=MiB(12))


def test_without_a_budget_the_groups_decide() -> None:
    assert isinstance(policy_for(spec_of("a b")), GroupPolicy)
    assert isinstance(policy_for(spec_of("a b", vram_budget=MiB(0))), GroupPolicy)


def test_with_a_budget_sizes_decide_and_persistent_groups_stay() -> None:
    policy = policy_for(SPEC)

    assert isinstance(policy, BudgetPolicy)
    assert policy.eviction_for(B, (P, A)) == (A,)
    assert policy.persistent == {P}


def test_older_arguments_are_charged_while_they_run() -> None:
    policy = policy_for(SPEC, charges={A: MiB(1)})

    assert policy.eviction_for(B, (P, A)) == ()


def test_a_resident_that_is_named_no_longer_stays_in_its_group() -> None:
    without = replace(spec_of("a b", sizes=SIZES), vram_budget=MiB(8))

    policy = policy_for(without, charges={P: MiB(3)}, groups={P: STAYS})

    assert policy.eviction_for(A, (P, B)) == (B,)
    assert policy.eviction_for(A, (P,)) == ()


def test_the_first_group_that_names_a_model_counts() -> None:
    second = group("second", "p a")
    members = members_of(spec_of("a p", groups=(STAYS, second)))

    assert members == {P: STAYS, A: second}
