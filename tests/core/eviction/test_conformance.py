"""What every policy promises, whatever it decides by."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from qmsup.core.eviction.groups import GroupPolicy
from qmsup.core.eviction.policy import EvictionPolicy, policy_for
from qmsup.core.eviction.ram import RamPolicy
from qmsup.ids import ModelId
from qmsup.spec import AllOf, AnyOf, MatrixSpec, Pool
from qmsup.units import MiB
from tests.support.scheduling import group, spec_of

MODELS = "a b c d e p q u"
SIZES = {"a": 6, "b": 5, "c": 4, "d": 10, "e": 1, "p": 3, "q": 2}
GROUPS = (
    group("g", "a b"),
    group("side", "c d", swap=False, exclusive=False),
    group("stays", "p q", persistent=True, swap=False),
)
POOLS = (
    group("cpu", "c d", pool=Pool.RAM),
    group("cpu that stays", "q", persistent=True, pool=Pool.RAM),
    group("stays", "p", persistent=True, swap=False),
)
RAMS = {"a": 2, "c": 4, "d": 10, "q": 2}
A, B, C, D, E, P = (ModelId(m) for m in "abcdep")
MATRIX = MatrixSpec(
    sets={
        "pair": AllOf((AnyOf((A, B)), C)),
        "more": AllOf((AnyOf((A, B)), AnyOf((D, AllOf((E, P)))), AnyOf((C, E)))),
    },
    costs={C: 3, P: 2},
)

POLICIES: dict[str, EvictionPolicy] = {
    "no groups": policy_for(spec_of(MODELS)),
    "groups": policy_for(spec_of(MODELS, groups=GROUPS)),
    "budget": policy_for(spec_of(MODELS, sizes=SIZES, vram_budget=MiB(12))),
    "budget over groups": policy_for(
        spec_of(MODELS, sizes=SIZES, groups=GROUPS, vram_budget=MiB(16))
    ),
    "pools without budgets": policy_for(spec_of(MODELS, groups=POOLS)),
    "pools": policy_for(
        spec_of(
            MODELS,
            sizes=SIZES,
            rams=RAMS,
            groups=POOLS,
            vram_budget=MiB(16),
            ram_budget=MiB(12),
        )
    ),
    "matrix": policy_for(spec_of(MODELS, matrix=MATRIX)),
}
POLICIES["ram"] = RamPolicy(
    pool=frozenset({C, D}),
    needs={ModelId(m): MiB(n) for m, n in RAMS.items()},
    charges={},
    budget=MiB(12),
    fallback=GroupPolicy(groups={}),
)

targets = st.sampled_from([ModelId(m) for m in MODELS.split()])
runnings = st.lists(targets, max_size=10)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES.keys())
@given(target=targets, running=runnings)
def test_it_answers_alike_names_only_what_runs_and_never_the_target(
    policy: EvictionPolicy, target: ModelId, running: list[ModelId]
) -> None:
    given_running = tuple(running)
    found = policy.eviction_for(target, running)

    assert found == policy.eviction_for(target, running)
    assert tuple(running) == given_running
    assert target not in found
    assert set(found) <= set(running)
    assert len(found) == len(set(found))
    assert policy.name


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES.keys())
@given(running=runnings)
def test_targets_of_one_likeness_are_answered_alike_while_none_of_them_runs(
    policy: EvictionPolicy, running: list[ModelId]
) -> None:
    answers: dict[object, tuple[ModelId, ...]] = {}
    for target in {ModelId(m) for m in MODELS.split()}.difference(running):
        found = policy.eviction_for(target, running)
        assert answers.setdefault(policy.likeness(target), found) == found


IN_ORDER = ("no groups", "groups", "pools without budgets", "matrix")


@pytest.mark.parametrize("name", IN_ORDER)
@given(target=targets, running=runnings)
def test_where_size_does_not_count_the_order_given_is_kept(
    name: str, target: ModelId, running: list[ModelId]
) -> None:
    found = POLICIES[name].eviction_for(target, running)

    assert list(found) == [model for model in dict.fromkeys(running) if model in found]


@given(target=targets, running=runnings)
def test_pools_keep_to_their_own(target: ModelId, running: list[ModelId]) -> None:
    in_ram = {"c", "d", "q"}
    found = POLICIES["pools"].eviction_for(target, running)

    if target in in_ram:
        assert set(found) <= in_ram
    if SIZES.get(target):
        assert "p" not in found
        assert "q" not in found


@given(target=targets, running=runnings)
def test_pools_leave_what_fits_in_ram(target: ModelId, running: list[ModelId]) -> None:
    found = POLICIES["pools"].eviction_for(target, running)

    need = RAMS.get(target, 0)
    stay = set(running) - set(found) - {target}
    if need and stay & {"c", "d"}:
        assert sum(RAMS.get(m, 0) for m in stay) + need <= 12


@given(target=targets, running=runnings)
def test_a_matrix_leaves_what_may_stand_together(target: ModelId, running: list[ModelId]) -> None:
    found = POLICIES["matrix"].eviction_for(target, running)

    beside = [{c, *pair} for c in "ab" for pair in ("c", "dc", "de", "epc", "ep")]
    stay = set(running) - set(found)
    if target not in running:
        assert not stay or any(stay | {target} <= allowed for allowed in beside)


@given(target=targets, running=runnings)
def test_a_budget_spares_the_persistent(target: ModelId, running: list[ModelId]) -> None:
    found = POLICIES["budget over groups"].eviction_for(target, running)

    if SIZES.get(target):
        assert not {"p", "q"} & set(found)


@given(target=targets, running=runnings)
def test_a_budget_leaves_what_fits(target: ModelId, running: list[ModelId]) -> None:
    found = POLICIES["budget"].eviction_for(target, running)

    if target in SIZES:
        stay = set(running) - set(found) - {target}
        assert "u" not in stay
        assert not stay or sum(SIZES[m] for m in stay) + SIZES[target] <= 12


@given(target=targets, running=runnings)
def test_a_budget_stops_at_the_first_fit(target: ModelId, running: list[ModelId]) -> None:
    found = POLICIES["budget"].eviction_for(target, running)

    known = [m for m in found if m in SIZES]
    if target in SIZES and known:
        stay = set(running) - set(found) - {target}
        one_less = sum(SIZES[m] for m in stay) + SIZES[known[-1]] + SIZES[target]
        assert one_less > 12, "the last victim was needed"
