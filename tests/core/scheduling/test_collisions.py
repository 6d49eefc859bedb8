"""Programs that size themselves by what is free: on one device they start one after the other."""

import pytest

from qmsup.core.scheduling import explanation
from qmsup.ids import ModelId
from qmsup.spec import Pool, Spec
from qmsup.units import MiB, Seconds
from tests.support.scheduling import Desk, group, spec_of

STORIES = {
    "two that do not would load side by side": (
        "",
        """
        r1 asks a  -> load a1, loading r1
        r2 asks b  -> load b2, loading r2
        """,
    ),
    "one that does waits for another load": (
        "b",
        """
        r1 asks a  -> load a1, loading r1
        r2 asks b  -> r2 at 1
        r3 asks c  -> load c2, loading r3
        a1 ready   -> grant r1
        c2 ready   -> grant r3, load b3, loading r2
        """,
    ),
    "another load waits for one that does": (
        "a",
        """
        r1 asks a  -> load a1, loading r1
        r2 asks b  -> r2 at 1
        a1 fails   -> refuse r1 model_load_failed, load b2, loading r2
        """,
    ),
    "a load that nobody wants any more does not keep it waiting": (
        "a b",
        """
        r1 asks a  -> load a1, loading r1
        r1 leaves  ->
        r2 asks b  -> r2 at 1, abort a1
        a1 gone    -> load b2, loading r2
        """,
    ),
    "it is no reason to stop anything, and what is loaded is served": (
        "a b",
        """
        load x a   -> load a1
        a1 ready   -> answer x done
        r2 asks b  -> load b2, loading r2
        r3 asks a  -> grant r3
        """,
    ),
    "who has waited long enough comes before other loads that would never pause": (
        "d",
        """
        r1 asks a              -> load a1, loading r1
        late asks d patience=0 -> late at 1
        r2 asks b              -> r2 at 2
        a1 ready               -> grant r1, load d2, loading late
        d2 ready               -> grant late, load b3, loading r2
        """,
    ),
}


@pytest.mark.parametrize(("fits", "story"), STORIES.values(), ids=STORIES.keys())
def test_story(fits: str, story: str) -> None:
    Desk(spec_of("a b c d", fits=fits), evicts={}).play(story)


def test_while_a_busy_model_keeps_it_waiting_others_may_load() -> None:
    Desk(spec_of("a b c d", fits="b"), evicts={"b": "a"}).play("""
        r1 asks a              -> load a1, loading r1
        a1 ready               -> grant r1
        late asks b patience=0 -> late at 1
        r2 asks c              -> load c2, loading r2
        r1 ends                ->
        r3 asks d              -> r3 at 2
        c2 ready               -> grant r2, stop a1, loading late
        """)


def two_pools() -> Spec:
    """a and b on the GPU, r and s in RAM."""
    return spec_of(
        "a b r s",
        fits="a r",
        sizes={"a": 1, "b": 1},
        rams={"r": 1, "s": 1},
        vram_budget=MiB(9),
        ram_budget=MiB(9),
        groups=(group("cpu", "r s", pool=Pool.RAM),),
    )


def test_the_memory_of_the_machine_is_another_device() -> None:
    Desk(two_pools()).play("""
        r1 asks a  -> load a1, loading r1
        r2 asks r  -> load r2, loading r2
        r3 asks b  -> r3 at 1
        r4 asks s  -> r4 at 2
        a1 ready   -> grant r1, load b3, loading r3
        r2 ready   -> grant r2, load s4, loading r4
        """)


def test_it_is_explained() -> None:
    desk = Desk(spec_of("a b", fits="b"), evicts={})
    for words in ("r1 asks a", "r2 asks b"):
        desk.say(words)

    standing = explanation.of_model(desk.scheduler.state, ModelId("b"), Seconds(2.0))
    assert standing.obstacles == (
        "a load is in the way: a is loading, begun 2.000 s ago; 1 request for it",
    )
