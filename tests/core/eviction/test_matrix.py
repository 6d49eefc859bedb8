from itertools import combinations

import pytest

from qmsup.core.eviction.combinations import Combinations
from qmsup.core.eviction.matrix import MatrixPolicy
from qmsup.ids import ModelId
from qmsup.spec import AllOf, AnyOf, Expression

G, Q, M, V, E, SD, L = (ModelId(name) for name in ("g", "q", "m", "v", "e", "sd", "L"))
SETS: dict[str, Expression] = {
    "standard": AllOf((AnyOf((G, Q, M)), V)),
    "with_rerank": AllOf((AnyOf((G, Q)), V, E)),
    "creative": AllOf((AnyOf((G, Q)), SD)),
    "full": L,
}
POLICY = MatrixPolicy(combinations=Combinations(SETS.values()), costs={V: 50, L: 30})

CASES = {
    "nothing runs": ("", "v", ""),
    "the chat models take turns beside the voice": ("g v", "q", "g"),
    "the set that keeps more is cheaper": ("g v e", "q", "g"),
    "what no set joins with it goes": ("v e g", "sd", "v e"),
    "a model that fills the card stops all": ("g v", "L", "g v"),
    "and all others stop it": ("L", "g", "L"),
    "a part of a set may run": ("e", "v", ""),
    "what runs already stops nothing": ("g q v", "q", ""),
    "a model in no set stops all": ("g v e", "x", "g v e"),
    "and makes room for all": ("x v", "g", "x"),
    "the order given is kept": ("e x v L g", "sd", "e x v L"),
    "who runs twice stops once": ("g g v", "q", "g"),
    "of equals the set that comes first": ("sd e", "g", "sd"),
    "a cost turns it round": ("sd v", "g", "sd"),
}


@pytest.mark.parametrize(("running", "load", "evicts"), CASES.values(), ids=CASES.keys())
def test_who_makes_room(running: str, load: str, evicts: str) -> None:
    found = POLICY.eviction_for(ModelId(load), [ModelId(m) for m in running.split()])

    assert " ".join(found) == evicts


def test_of_equals_in_one_set_the_choice_that_comes_first_is_kept() -> None:
    both = AnyOf((AllOf((V, G)), AllOf((V, Q))))
    policy = MatrixPolicy(combinations=Combinations([both]))

    assert policy.eviction_for(V, [G, Q]) == (Q,)
    assert policy.eviction_for(V, [Q, G]) == (Q,)


def test_a_dear_model_outweighs_several_cheap_ones() -> None:
    either = AnyOf((AllOf((V, G, Q)), AllOf((V, L))))
    policy = MatrixPolicy(combinations=Combinations([either]), costs={L: 3})

    assert policy.eviction_for(V, [G, Q, L]) == (G, Q)


def test_answers_stay_right_however_many_are_asked_for() -> None:
    models = [ModelId(f"m{n}") for n in range(11)]
    policy = MatrixPolicy(combinations=Combinations([AllOf((V, AnyOf(tuple(models))))]))
    asked = [chosen for n in range(12) for chosen in combinations(models, n)]

    found = [policy.eviction_for(V, running) for running in asked + asked]

    assert found == [running[1:] for running in asked + asked]
