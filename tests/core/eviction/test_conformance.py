"""What every policy promises, whatever it decides by."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from qmsup.core.eviction.policy import EvictionPolicy, policy_for
from qmsup.ids import ModelId
from qmsup.units import MiB
from tests.support.scheduling import group, spec_of

MODELS = "a b c d e p q u"
SIZES = {"a": 6, "b": 5, "c": 4, "d": 10, "e": 1, "p": 3, "q": 2}
GROUPS = (
    group("g", "a b"),
    group("side", "c d", swap=False, exclusive=False),
    group("stays", "p q", persistent=True, swap=False),
)

POLICIES = {
    "no groups": policy_for(spec_of(MODELS)),
    "groups": policy_for(spec_of(MODELS, groups=GROUPS)),
    "budget": policy_for(spec_of(MODELS, sizes=SIZES, vram_budget=MiB(12))),
    "budget over groups": policy_for(
        spec_of(MODELS, sizes=SIZES, groups=GROUPS, vram_budget=MiB(16))
    ),
}

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
