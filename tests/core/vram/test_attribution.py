"""Whose the memory is. `1:400` is what child 1 holds by one process; `x` stands for a value that cannot be read."""

from dataclasses import replace

import pytest

from qmsup.core.vram.attribution import Attribution, Resident, Share, Stage, Trust, attribute
from qmsup.core.vram.sample import Card, Sample, Use
from qmsup.ids import Incarnation
from qmsup.units import MiB

STAGES = {"starting": Stage.STARTING, "ready": Stage.READY, "stopping": Stage.STOPPING}


def card(used: str = "1000", *, uuid: str = "u1", has_processes: bool = True) -> Card:
    return Card(
        uuid=uuid,
        name=f"card {uuid}",
        total=MiB(2000),
        used=None if used == "x" else MiB(int(used)),
        has_processes=has_processes,
    )


def uses_of(words: str) -> tuple[tuple[Use, ...], dict[int, Incarnation]]:
    """Each process has a pid of its own; child 0 is none of ours."""
    uses, owners = list[Use](), dict[int, Incarnation]()
    for pid, word in enumerate(words.split(), 100):
        child, size = word.split(":")
        uses.append(Use(pid=pid, card="u1", used=None if size == "x" else MiB(int(size))))
        if child != "0":
            owners[pid] = Incarnation(int(child))
    return tuple(uses), owners


def residents_of(words: str) -> list[Resident]:
    """`1:ready`, `2:starting`, `3:stopping!` (was seen before), `4:ready-ram` (of the RAM pool)."""
    return [
        Resident(
            incarnation=Incarnation(int(child)),
            stage=STAGES[stage.removesuffix("!").removesuffix("-ram")],
            is_on_gpu=not stage.endswith("-ram"),
            was_seen=stage.endswith("!"),
        )
        for child, stage in (word.split(":") for word in words.split())
    ]


def shared_out(used: str, uses: str, residents: str) -> Attribution:
    seen, owners = uses_of(uses)
    return attribute(Sample(cards=(card(used),), uses=seen), residents_of(residents), owners)


TRUSTED = {
    # used, uses, residents → held by others
    "without a child all that is used is others'": ("1000", "0:600", "", 1000),
    "a child's is taken off": ("1000", "1:400 0:600", "1:ready", 600),
    "all processes of a child count": ("1000", "1:400 1:100 0:300", "1:ready", 500),
    "others' may hide theirs": ("1000", "1:400 0:x", "1:ready", 600),
    "of two children": ("1000", "1:400 2:250", "1:ready 2:ready", 350),
    "one that loads counts by what it has": ("1000", "1:400 2:50", "1:ready 2:starting", 550),
    "one of the RAM pool need not be seen": ("1000", "1:400", "1:ready 2:ready-ram", 600),
    "but counts if it is": ("1000", "1:400 2:50", "1:ready 2:ready-ram", 550),
    "one that stops and has vanished holds nothing": ("1000", "", "1:stopping!", 1000),
    "what is read at two moments is not less than nothing": ("300", "1:400", "1:ready", 0),
    "nor a reason to doubt by some": ("300", "1:555", "1:ready", 0),
}


@pytest.mark.parametrize(("used", "uses", "residents", "others"), TRUSTED.values(), ids=TRUSTED)
def test_what_is_trusted(used: str, uses: str, residents: str, others: int) -> None:
    shared = shared_out(used, uses, residents)

    assert (shared.trust, shared.because, shared.others) == (Trust.GOOD, "", others)


DOUBTED = {
    "a ready child that is not seen": ("1000", "", "1:ready", Trust.NONE, "any card: child 1"),
    "nor once it was": ("1000", "", "1:ready!", Trust.NONE, "any card: child 1"),
    "one of two": ("1000", "1:400", "1:ready 2:ready", Trust.NONE, "any card: child 2"),
    "two": ("1000", "", "1:ready 2:ready", Trust.NONE, "any card: child 1, child 2"),
    "a value that cannot be read": ("1000", "1:x", "1:ready", Trust.NONE, "any card: child 1"),
    "one of a child's two": ("1000", "1:400 1:x", "1:ready", Trust.NONE, "any card: child 1"),
    "one of the RAM pool that hides": (
        "1000",
        "1:x",
        "1:ready-ram",
        Trust.NONE,
        "any card: child 1",
    ),
    "a card whose use is not known": ("x", "", "", Trust.NONE, "card u1 is used cannot be read"),
    "a child that loads and was not seen yet": (
        "1000",
        "",
        "1:starting",
        Trust.OPEN,
        "any card yet: child 1",
    ),
    "a child that stops and never was": (
        "1000",
        "",
        "1:stopping",
        Trust.OPEN,
        "any card yet: child 1",
    ),
    "a child that holds more than is in use": (
        "300",
        "1:556",
        "1:ready",
        Trust.OPEN,
        "models hold more of card u1 than is in use there",
    ),
    "or than the card has": ("2500", "1:2256", "1:ready", Trust.OPEN, "or than it has"),
    "children that do together": (
        "1000",
        "1:900 2:900",
        "1:ready 2:ready",
        Trust.OPEN,
        "models hold more of card u1",
    ),
    "a ready one that is lost is worse": (
        "1000",
        "",
        "1:starting 2:ready",
        Trust.NONE,
        "any card: child 2",
    ),
}


@pytest.mark.parametrize(
    ("used", "uses", "residents", "trust", "because"), DOUBTED.values(), ids=DOUBTED
)
def test_what_is_not_trusted(
    used: str, uses: str, residents: str, trust: Trust, because: str
) -> None:
    shared = shared_out(used, uses, residents)

    assert shared.trust is trust
    assert because in shared.because


def test_no_card_is_no_reading() -> None:
    shared = attribute(Sample(), [], {})

    assert (shared.trust, shared.because, shared.free) == (Trust.NONE, "no GPU can be read", None)


def test_a_card_that_hides_its_processes_is_good_while_we_have_none() -> None:
    sample = Sample(cards=(card(has_processes=False),))

    assert attribute(sample, residents_of("1:ready-ram"), {}).trust is Trust.GOOD
    hidden = attribute(sample, residents_of("1:starting"), {})
    assert hidden.trust is Trust.NONE
    assert "which process uses how much of card u1" in hidden.because


def test_several_cards_are_one_sum() -> None:
    sample = Sample(
        cards=(card("1000"), card("500", uuid="u2")),
        uses=(
            Use(pid=100, card="u1", used=MiB(400)),
            Use(pid=100, card="u2", used=MiB(300)),
        ),
    )

    shared = attribute(sample, residents_of("1:ready"), {100: Incarnation(1)})

    assert (shared.total, shared.used, shared.free, shared.others) == (4000, 1500, 2500, 800)
    assert shared.held == {1: 700}
    assert shared.cards == {"u1", "u2"}
    assert [(share.card.uuid, share.ours) for share in shared.shares] == [("u1", 400), ("u2", 300)]
    assert not shared.contradicts


def test_what_is_too_much_on_one_card_is_not_made_up_for_by_another() -> None:
    sample = Sample(
        cards=(card("1000"), card("1000", uuid="u2")),
        uses=(Use(pid=100, card="u1", used=MiB(1500)),),
    )

    shared = attribute(sample, residents_of("1:ready"), {100: Incarnation(1)})

    assert shared.trust is Trust.OPEN
    assert shared.contradicts
    assert shared.others_of == {"u1": 0, "u2": 1000}


@pytest.mark.parametrize(
    ("held", "counted"), [(0, "u1"), (63, "u1"), (64, "u1 i1"), (None, "u1 i1")]
)
def test_an_integrated_gpu_that_is_only_looked_at_does_not_count(
    held: int | None, counted: str
) -> None:
    cards = (card("1000"), replace(card("1000", uuid="i1"), is_integrated=True))
    use = Use(pid=100, card="i1", used=None if held is None else MiB(held))
    sample = Sample(cards=cards, uses=(Use(pid=100, card="u1", used=MiB(400)), use))

    shared = attribute(sample, residents_of("1:ready"), {100: Incarnation(1)})

    assert " ".join(share.card.uuid for share in shared.shares) == counted


@pytest.mark.parametrize(
    ("cards", "uses_of_ours", "counted"),
    [
        ("u1 i1", "", "u1"),
        ("u1 i1", "u1", "u1"),
        ("u1 i1", "i1", "u1 i1"),
        ("i1", "", "i1"),
    ],
    ids=["beside a card", "used by others", "used by us", "alone"],
)
def test_an_integrated_gpu_counts_where_it_is_used_or_is_all_there_is(
    cards: str, uses_of_ours: str, counted: str
) -> None:
    sample = Sample(
        cards=tuple(
            replace(card("1000", uuid=uuid), is_integrated=uuid == "i1") for uuid in cards.split()
        ),
        uses=(
            Use(pid=9, card="i1", used=MiB(300)),
            *(Use(pid=100, card=uuid, used=MiB(400)) for uuid in uses_of_ours.split()),
        ),
    )

    shared = attribute(sample, [], {100: Incarnation(1)})

    assert " ".join(share.card.uuid for share in shared.shares) == counted
    assert shared.used == 1000 * len(shared.cards)
    assert shared.held == ({1: 400} if uses_of_ours else {})


@pytest.mark.parametrize(
    ("used", "ours", "others", "is_too_much"),
    [
        ("1000", 400, 600, False),
        ("300", 400, 0, False),
        ("300", 556, 0, True),
        ("1000", None, None, False),
        ("x", 400, None, False),
        ("x", 2256, None, True),
    ],
)
def test_what_is_known_of_one_card(
    used: str, ours: int | None, others: int | None, *, is_too_much: bool
) -> None:
    share = Share(card=card(used), ours=None if ours is None else MiB(ours))

    assert (share.others, share.is_too_much) == (others, is_too_much)


def test_one_dark_card_among_several_darkens_all() -> None:
    sample = Sample(cards=(card("1000"), card("x", uuid="u2")))

    assert attribute(sample, [], {}).used is None
