import pytest

from qmsup.core.eviction.budget import BudgetPolicy
from qmsup.core.eviction.groups import GroupPolicy
from qmsup.core.eviction.pools import PoolsPolicy
from qmsup.core.eviction.ram import RamPolicy
from qmsup.ids import ModelId
from qmsup.units import MiB

# Models r… are in the RAM pool: `r1:12` takes 12 RAM. Others are on the GPU: `g1:20+6` takes 20 VRAM and 6 RAM.
# vram (None = groups decide), ram, running (cold → hot), load, evict
EXAMPLE = "r1:12 r2:10 g1:20+6"
CASES = {
    "a CPU model makes the coldest CPU model go": (24, 32, EXAMPLE, "r3:9", "r1"),
    "a GPU model that fits the card may still need RAM": (24, 32, EXAMPLE, "g2:4+8", "r1"),
    "a GPU model that offloads nothing touches no RAM": (24, 32, EXAMPLE, "g2:4+0", ""),
    "what the card gives back in RAM counts": (24, 32, EXAMPLE, "g2:8+8", "g1"),
    "both pools may have to give": (24, 32, EXAMPLE, "g2:8+12", "g1 r1"),
    "a CPU model's VRAM of nothing is not unknown": (24, 99, "r1:12", "g1:20+6", ""),
    "a GPU model of unknown size goes": (24, 99, "g1:0+0 r1:12", "g2:4+0", "g1"),
    "a CPU model never stops a GPU model": (24, 8, "g1:20+6 r1:1", "r2:9", "r1"),
    "without a VRAM budget groups decide on the GPU alone": (None, 32, EXAMPLE, "g2:4+1", "g1"),
    "without a RAM budget groups decide in RAM alone": (24, None, EXAMPLE, "r3:9", "r1 r2"),
    "and no spill is charged": (24, None, EXAMPLE, "g2:4+99", ""),
    "a GPU target of unknown size asks the groups on the GPU": (24, 99, EXAMPLE, "g2:0+0", "g1"),
    "with neither budget each pool swaps its own": (None, None, EXAMPLE, "g2:4+8", "g1"),
    "a running model twice stops once": (24, 32, "r1:12 r1:12 g1:20+6 g1:20+6", "g2:8+24", "g1 r1"),
    "the target is not in its own way": (24, 32, "g2:8+12 r1:12", "g2:8+12", ""),
}


def read(word: str) -> tuple[ModelId, MiB, MiB]:
    """The model, its VRAM and its RAM."""
    name, size = word.split(":")
    vram, _, ram = size.rpartition("+")
    return ModelId(name), MiB(int(vram or 0)), MiB(int(ram))


@pytest.mark.parametrize(
    ("vram", "ram", "running", "load", "evicts"), CASES.values(), ids=CASES.keys()
)
def test_who_makes_room(
    vram: int | None, ram: int | None, running: str, load: str, evicts: str
) -> None:
    models = [read(word) for word in (*running.split(), load)]
    by_groups = GroupPolicy(groups={})
    by_budget = BudgetPolicy(
        needs={model: size for model, size, _ in models},
        charges={},
        budget=MiB(vram or 0),
        fallback=by_groups,
    )
    in_ram = RamPolicy(
        pool=frozenset(model for model, _, _ in models if model.startswith("r")),
        needs={model: size for model, _, size in models},
        charges={},
        budget=None if ram is None else MiB(ram),
        fallback=by_groups,
    )
    policy = PoolsPolicy(gpu=by_groups if vram is None else by_budget, ram=in_ram)

    found = policy.eviction_for(models[-1][0], [model for model, _, _ in models[:-1]])

    assert " ".join(found) == evicts


def test_alike_are_those_of_one_pool_that_take_the_same_of_both() -> None:
    words = ["r1:5", "r2:5", "r3:6", "g1:5+0", "g2:5+0", "g3:5+5", "g4:6+0"]
    models = [read(word) for word in words]
    by_groups = GroupPolicy(groups={})
    policy = PoolsPolicy(
        gpu=BudgetPolicy(
            needs={model: size for model, size, _ in models if model.startswith("g")},
            charges={},
            budget=MiB(9),
            fallback=by_groups,
        ),
        ram=RamPolicy(
            pool=frozenset(model for model, _, _ in models if model.startswith("r")),
            needs={model: size for model, _, size in models},
            charges={},
            budget=MiB(9),
            fallback=by_groups,
        ),
    )

    alike: dict[object, list[str]] = {}
    for model, _, _ in models:
        alike.setdefault(policy.likeness(model), []).append(model)

    assert [*alike.values()] == [["r1", "r2"], ["r3"], ["g1", "g2"], ["g3"], ["g4"]]
