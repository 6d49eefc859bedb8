from dataclasses import replace

import pytest

from qmsup.core.eviction.groups import GroupPolicy
from qmsup.core.eviction.ram import RamPolicy
from qmsup.ids import ModelId
from qmsup.units import MiB
from tests.support.scheduling import group

# Models r… are in the pool, g… on the GPU; a number is RAM, `?` = unknown or none, `!` = persistent.
# budget (None = nothing is said), running (cold → hot), load, evict
IN_POOL = {
    "both fit": (32, "ra12", "rb20", ""),
    "the coldest of the pool goes, and no more": (32, "ra12 rb10 ga6", "rc9", "ra"),
    "a GPU model is charged and stays, however cold": (32, "ga20 ra6 rb6", "rc6", "ra"),
    "what can never fit takes all of the pool": (8, "ra4 ga4 rb4", "rc10", "ra rb"),
    "a persistent model is charged and stays": (12, "rp4! ra5", "rc5", "ra"),
    "an exact fit fits": (15, "ra5 ga5", "rc5", ""),
    "one of unknown size always goes, and first": (20, "ra5 rb? rc5", "rd15", "rb ra"),
    "a GPU model that offloads nothing is not unknown": (20, "ga? ra5", "rb5", ""),
    "a persistent one of unknown size stays": (20, "rp?! ra5", "rb5", ""),
    "without a budget the groups decide in the pool": (None, "ga5 ra5 rb5 rp5!", "rc5", "ra rb"),
    "so they do for a target of unknown size": (99, "ga5 ra5 rb5 rp5!", "rc?", "ra rb"),
    "nothing runs": (4, "", "ra5", ""),
    "who runs twice is charged once": (10, "ra5 ra5", "rc5", ""),
    "the target is not charged twice": (10, "rc5 ra5", "rc5", ""),
}
FROM_THE_GPU = {
    "the spill fits": (32, "ra12 ga6", "gb8", ""),
    "the coldest of the pool goes for it": (32, "ra12 rb10 ga6", "gb8", "ra"),
    "a GPU model stays": (10, "ga6 ra4", "gb8", "ra"),
    "one of unknown size stays while it fits": (32, "ra?", "gb8", ""),
    "an exact fit stops nothing, of whatever size": (20, "ra12 rb?", "gb8", ""),
    "and goes first when it does not": (12, "ra5 rb? rc5", "gb8", "rb ra rc"),
    "without a budget nothing goes": (None, "ra12", "gb8", ""),
    "for one that offloads nothing neither": (4, "ra12", "gb?", ""),
    "a persistent model stays": (10, "rp4! ra4", "gb4", "ra"),
}


def policy(budget: int | None, words: list[str]) -> RamPolicy:
    models = [ModelId(word[:2]) for word in words]
    persistent = [ModelId(word[:2]) for word in words if word.endswith("!")]
    stays = group("stays", " ".join(persistent), persistent=True)
    sizes = [word[2:].rstrip("!") for word in words]
    return RamPolicy(
        pool=frozenset(model for model in models if model.startswith("r")),
        needs={
            m: MiB(0 if size == "?" else int(size)) for m, size in zip(models, sizes, strict=True)
        },
        charges={},
        budget=None if budget is None else MiB(budget),
        persistent=frozenset(persistent),
        fallback=GroupPolicy(groups=dict.fromkeys(persistent, stays)),
    )


@pytest.mark.parametrize(
    ("budget", "running", "load", "evicts"), IN_POOL.values(), ids=IN_POOL.keys()
)
def test_who_makes_room_for_a_model_of_the_pool(
    budget: int | None, running: str, load: str, evicts: str
) -> None:
    words = running.split()

    found = policy(budget, [*words, load]).eviction_for(
        ModelId(load[:2]), [ModelId(w[:2]) for w in words]
    )

    assert " ".join(found) == evicts


@pytest.mark.parametrize(
    ("budget", "running", "load", "evicts"), FROM_THE_GPU.values(), ids=FROM_THE_GPU.keys()
)
def test_who_makes_room_for_what_a_gpu_model_offloads(
    budget: int | None, running: str, load: str, evicts: str
) -> None:
    words = running.split()

    found = policy(budget, [*words, load]).spill_for(
        ModelId(load[:2]), [ModelId(w[:2]) for w in words]
    )

    assert " ".join(found) == evicts


@pytest.mark.parametrize(
    ("ceiling", "evicts"), [(None, ""), (9, "ra"), (99, "")], ids=["unread", "tight", "loose"]
)
def test_what_the_machine_has_tightens_the_budget_and_never_loosens_it(
    ceiling: int | None, evicts: str
) -> None:
    tight = replace(
        policy(10, ["ra5", "rb5", "gb5"]), ceiling=None if ceiling is None else MiB(ceiling)
    )

    assert " ".join(tight.eviction_for(ModelId("rb"), [ModelId("ra")])) == evicts
    assert " ".join(tight.spill_for(ModelId("gb"), [ModelId("ra")])) == evicts


def test_a_machine_with_room_to_spare_does_not_raise_the_budget() -> None:
    small = replace(policy(9, ["ra5", "rb5"]), ceiling=MiB(99))

    assert small.eviction_for(ModelId("rb"), [ModelId("ra")]) == ("ra",)


def test_a_reading_is_no_budget() -> None:
    unlimited = replace(policy(None, ["ra5", "rb5"]), ceiling=MiB(1))

    assert unlimited.limit is None
    assert unlimited.eviction_for(ModelId("rb"), [ModelId("ra")]) == ("ra",)
    assert unlimited.spill_for(ModelId("rb"), [ModelId("ra")]) == ()


def test_a_resident_is_charged_by_what_it_runs_with() -> None:
    found = RamPolicy(
        pool=frozenset({ModelId("a"), ModelId("b")}),
        needs={ModelId("a"): MiB(2), ModelId("b"): MiB(5)},
        charges={ModelId("a"): MiB(9)},
        budget=MiB(10),
        fallback=GroupPolicy(groups={}),
    )

    assert found.eviction_for(ModelId("b"), [ModelId("a")]) == ("a",)
    assert found.eviction_for(ModelId("a"), [ModelId("b")]) == ()


def test_alike_are_those_of_one_size_and_one_group() -> None:
    first, second = group("g", "ra rb"), group("h", "rc")
    groups = {ModelId("ra"): first, ModelId("rb"): first, ModelId("rc"): second}
    in_ram = replace(policy(None, ["ra5", "rb5", "rc5"]), fallback=GroupPolicy(groups=groups))
    likeness = {model: in_ram.likeness(ModelId(model)) for model in groups}

    assert likeness[ModelId("ra")] == likeness[ModelId("rb")] != likeness[ModelId("rc")]
    bigger = replace(in_ram, needs={**in_ram.needs, ModelId("rb"): MiB(6)})
    assert bigger.likeness(ModelId("rb")) != likeness[ModelId("ra")]
