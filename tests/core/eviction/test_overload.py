"""A load that cannot be made to fit is told as what it is: over which budget, by how much, and beside whom."""

import pytest

from qmsup.core.eviction.overload import overloads
from qmsup.core.eviction.policy import Actuals, EvictionPolicy, policy_for
from qmsup.ids import ModelId
from qmsup.spec import AnyOf, MatrixSpec, Pool, Spec
from qmsup.units import MiB
from tests.support.scheduling import group, spec_of

BUDGET = spec_of(
    "a b big p u",
    sizes={"a": 5000, "b": 7000, "big": 13000, "p": 4000},
    vram_budget=MiB(12000),
    groups=(group("kept", "p", persistent=True),),
)
POOLS = spec_of(
    "r q g h",
    sizes={"g": 20, "h": 4},
    rams={"r": 12, "q": 30, "g": 6, "h": 30},
    ram_budget=MiB(32),
    vram_budget=MiB(24),
    groups=(group("cpu", "r q", pool=Pool.RAM),),
)
IN_TURNS = spec_of(
    "r q g h",
    sizes={"g": 20, "h": 9},
    rams={"r": 12, "q": 30, "h": 30},
    ram_budget=MiB(32),
    groups=POOLS.groups,
)
ON_A = Actuals(pinned=frozenset({ModelId("a")}))


def told(policy: EvictionPolicy, target: str, staying: str) -> list[str]:
    running = [ModelId(model) for model in staying.split()]
    return [str(overload) for overload in overloads(policy, ModelId(target), running)]


VRAM = "of VRAM for models"
CASES: dict[str, tuple[Spec, Actuals, str, str, list[str]]] = {
    "what fits exactly is over nothing": (BUDGET, Actuals(), "b", "a", []),
    "beside what is pinned": (
        BUDGET,
        Actuals(pinned=frozenset({ModelId("b")})),
        "a",
        "b p",
        [f"4 000 MiB over the 12 000 MiB {VRAM}, beside b (pinned), p (persistent)"],
    ),
    "beside nothing": (
        BUDGET,
        Actuals(),
        "big",
        "",
        [f"1 000 MiB over the 12 000 MiB {VRAM}, alone"],
    ),
    "what others leave is what there is": (
        BUDGET,
        Actuals(ceiling=MiB(4000), pinned=ON_A.pinned),
        "p",
        "a",
        [f"5 000 MiB over the 4 000 MiB {VRAM}, beside a (pinned)"],
    ),
    "what takes nothing is not named": (
        BUDGET,
        ON_A,
        "b",
        "a u p",
        [f"4 000 MiB over the 12 000 MiB {VRAM}, beside a (pinned), p (persistent)"],
    ),
    "of an unknown size nothing can be said": (BUDGET, ON_A, "u", "a b p", []),
    "a model of the RAM pool is held to the RAM": (
        POOLS,
        Actuals(),
        "q",
        "g",
        ["4 MiB over the 32 MiB of RAM for models, beside g"],
    ),
    "one on the GPU to both": (
        POOLS,
        Actuals(pinned=frozenset({ModelId("g")})),
        "h",
        "g r",
        ["16 MiB over the 32 MiB of RAM for models, beside g (pinned), r"],
    ),
    "and told of both": (
        POOLS,
        Actuals(ceiling=MiB(23)),
        "h",
        "g",
        [
            "1 MiB over the 23 MiB of VRAM for models, beside g",
            "4 MiB over the 32 MiB of RAM for models, beside g",
        ],
    ),
    "where groups decide on the GPU, RAM alone counts": (
        IN_TURNS,
        Actuals(),
        "h",
        "r",
        ["10 MiB over the 32 MiB of RAM for models, beside r"],
    ),
    "without a budget of RAM there is none": (
        spec_of("r q", rams={"r": 12, "q": 30}, groups=(group("cpu", "r q", pool=Pool.RAM),)),
        Actuals(),
        "q",
        "r",
        [],
    ),
    "groups know no sizes": (spec_of("a b"), Actuals(), "a", "b", []),
    "nor does a matrix": (
        spec_of("a b", matrix=MatrixSpec(sets={"s": AnyOf((ModelId("a"), ModelId("b")))})),
        Actuals(),
        "a",
        "b",
        [],
    ),
}


@pytest.mark.parametrize(
    ("spec", "actuals", "target", "staying", "wanted"), CASES.values(), ids=CASES
)
def test_it_is_told(
    spec: Spec, actuals: Actuals, target: str, staying: str, wanted: list[str]
) -> None:
    assert told(policy_for(spec, actuals), target, staying) == wanted
