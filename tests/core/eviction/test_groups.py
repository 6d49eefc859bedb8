import pytest

from qmsup.core.eviction.groups import DEFAULT, GroupPolicy
from qmsup.ids import ModelId
from qmsup.spec import GroupSpec
from tests.support.scheduling import group

G = group("g", "a b")
KEEPS = group("keeps", "c d", swap=False)
SHARES = group("shares", "e", exclusive=False)
STAYS = group("stays", "p q", persistent=True)
GROUPS = (G, KEEPS, SHARES, STAYS)

CASES = {
    "nothing runs": ("a", "", ""),
    "members of a group take turns": ("a", "b", "b"),
    "members of a group without swap stay": ("c", "d", ""),
    "an exclusive group stops another": ("a", "c d", "c d"),
    "an exclusive group leaves a persistent one alone": ("a", "p e", "e"),
    "a group that is not exclusive stops nobody else": ("e", "a c p", ""),
    "persistent does not help against its own group": ("p", "q a", "q a"),
    "models in no group take turns": ("x", "y", "y"),
    "models in no group and groups stop each other": ("x", "a p", "a"),
    "a group stops models in none": ("a", "x", "x"),
    "the target is never named": ("a", "a b", "b"),
    "who runs twice stops once": ("a", "b b", "b"),
    "the order given is kept": ("a", "y d b x", "y d b x"),
}


def policy() -> GroupPolicy:
    members: dict[ModelId, GroupSpec] = {m: g for g in GROUPS for m in g.members}
    return GroupPolicy(groups=members)


@pytest.mark.parametrize(("target", "running", "evicts"), CASES.values(), ids=CASES.keys())
def test_who_makes_room(target: str, running: str, evicts: str) -> None:
    found = policy().eviction_for(ModelId(target), [ModelId(m) for m in running.split()])

    assert " ".join(found) == evicts


def test_a_model_in_no_group_is_in_the_default_one() -> None:
    assert policy().group_of(ModelId("x")) == DEFAULT
    assert DEFAULT.swap
    assert DEFAULT.exclusive
    assert not policy().is_persistent(ModelId("x"))
    assert policy().is_persistent(ModelId("p"))


@pytest.mark.parametrize(
    ("target", "running", "evicts"), [("a", "c d", "d"), ("d", "c", ""), ("b", "a", "a")]
)
def test_what_is_pinned_is_left_alone_by_other_groups_and_takes_turns_in_its_own(
    target: str, running: str, evicts: str
) -> None:
    pinned = GroupPolicy(groups=policy().groups, pinned=frozenset({ModelId("a"), ModelId("c")}))

    found = pinned.eviction_for(ModelId(target), [ModelId(m) for m in running.split()])

    assert " ".join(found) == evicts


def test_alike_are_members_of_one_group() -> None:
    likeness = {model: policy().likeness(ModelId(model)) for model in "abcepxy"}

    assert likeness["a"] == likeness["b"]
    assert likeness["x"] == likeness["y"]
    assert len(set(likeness.values())) == 5
    changed = GroupPolicy(groups={ModelId("a"): group("g", "a b", swap=False)})
    assert changed.likeness(ModelId("a")) != likeness["a"], "of a former configuration"
