"""GPU memory as it is read: what finds no room is refused before anything stops for it, and what returns is awaited.

`reading free=6 a1=4`: so much is free, and a's first child holds so much. `back a1 3 9`: 3 of it are back, 9 are free,
and with `b2=4` b's child was seen to hold 4 by the same reading.
"""

import pytest

from qmsup.core.scheduling import memory, views
from qmsup.core.scheduling.effects import Refuse
from qmsup.core.scheduling.memory_events import FootprintMeasured
from qmsup.core.scheduling.records import SwapPhase
from qmsup.ids import Incarnation, ModelId
from qmsup.spec import HoldOn, SchedulerSpec, Spec
from qmsup.units import MiB, Seconds
from tests.support.scheduling import Desk, group, spec_of

A, B = ModelId("a"), ModelId("b")
SIZES = {"a": 400, "b": 1200, "c": 300}


def desk(sizes: dict[str, int] | None = None, evicts: dict[str, str] | None = None) -> Desk:
    """Models a and b take turns, c stands beside them."""
    table = {"b": "a", "a": "b"} if evicts is None else evicts
    return Desk(spec_of("a b c", sizes=SIZES if sizes is None else sizes), evicts=table)


LOADED = """
    load x a -> load a1
    a1 ready -> answer x done
    """

STORIES = {
    "what cannot fit even then stops nothing": """
        reading free=600 a1=400 ->
        r1 asks b -> refuse r1 insufficient_vram
        r2 asks a -> grant r2
        """,
    "an exact fit fits": """
        reading free=800 a1=400 ->
        r1 asks b -> stop a1, loading r1
        """,
    "who waits is refused when room goes": """
        r2 asks a -> grant r2
        r1 asks b -> r1 at 1
        reading free=600 a1=400 -> refuse r1 insufficient_vram
        """,
    "a card without a trusted reading is judged by its budget": """
        reading free=600 a1=400 ->
        blind     ->
        r1 asks b -> stop a1, loading r1
        a1 gone   -> load b2
        """,
    "a load waits until most of the memory is back": """
        reading free=1000 a1=400 ->
        r1 asks b -> stop a1, loading r1
        a1 gone   ->
        back a1 200 1200 ->
        back a1 299 1299 ->
        back a1 300 1300 -> load b2
        """,
    "it waits for all of it if it needs all": """
        reading free=800 a1=400 ->
        r1 asks b -> stop a1, loading r1
        a1 gone   ->
        back a1 350 1150 ->
        back a1 400 1200 -> load b2
        """,
    "it waits no longer than so long": """
        reading free=1200 a1=400 ->
        r1 asks b -> stop a1, loading r1
        at 1      ->
        a1 gone   ->
        at 3.9    ->
        at 4      -> read
        looked    -> load b2
        """,
    "memory that did not come back is not there": """
        reading free=800 a1=400 ->
        r1 asks b -> stop a1, loading r1
        a1 gone   ->
        at 3      -> read
        looked    -> refuse r1 insufficient_vram
        r2 asks b -> refuse r2 insufficient_vram
        """,
    "without trust nothing is waited for": """
        reading free=800 a1=400 ->
        r1 asks b -> stop a1, loading r1
        a1 gone   ->
        blind     -> load b2
        """,
    "what a crash leaves behind is awaited as well": """
        reading free=800 a1=400 ->
        a1 fails  ->
        r1 asks b -> loading r1
        back a1 400 1200 -> load b2
        """,
    "what fits already waits for nothing": """
        reading free=1200 a1=400 ->
        a1 fails  ->
        r1 asks b -> load b2, loading r1
        """,
    "a child that held nothing is not waited for": """
        reading free=1200 a1=0 ->
        r1 asks b -> stop a1, loading r1
        a1 gone   -> load b2
        """,
    "news of memory that nobody waits for": """
        back a7 5 5 ->
        reading free=1200 a1=400 ->
        unload y a -> stop a1
        a1 gone   -> answer y done
        back a1 100 1300 ->
        back a1 400 1600 ->
        back a1 400 1600 ->
        at 3      ->
        """,
    "what its own former child holds comes back": """
        reading free=100 a1=400 ->
        unload y a -> stop a1
        r1 asks a  -> r1 at 1
        a1 gone    -> answer y done, loading r1
        back a1 400 500 -> load a2
        """,
    "so does what stops for other reasons": """
        reading free=100 a1=400 ->
        unload y a -> stop a1
        r1 asks c  -> r1 at 1
        a1 gone    -> answer y done, loading r1
        back a1 300 400 -> load c2
        """,
    "what stops does not help where it is not enough": """
        reading free=700 a1=400 ->
        unload y a -> stop a1
        r1 asks b  -> refuse r1 insufficient_vram
        """,
    "given up while memory returns, it ends at once": """
        reading free=800 a1=400 ->
        r1 asks b -> stop a1, loading r1
        a1 gone   ->
        r1 leaves ->
        r2 asks a -> r2 at 1, load a2, loading r2
        """,
    "unloaded while memory returns, it is not loaded": """
        reading free=800 a1=400 ->
        r1 asks b  -> stop a1, loading r1
        a1 gone    ->
        unload y b -> refuse r1 model_unloaded, answer y done
        back a1 400 1200 ->
        """,
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_story(story: str) -> None:
    desk().play(LOADED + story)


def test_a_model_of_unknown_size_is_not_refused() -> None:
    desk(sizes={}).play("""
        reading free=0 ->
        r1 asks a -> load a1, loading r1
        """)


def test_a_model_of_unknown_size_does_not_wait_for_memory() -> None:
    desk({"a": 400}, evicts={}).play("""
        reading free=500 ->
        r1 asks a -> load a1, loading r1
        reading free=300 a1=0 ->
        r2 asks b -> load b2, loading r2
        """)


def test_what_was_measured_counts_where_it_is_less_than_the_estimate() -> None:
    measured = Desk(budgeted({"a": 900, "b": 500}))
    for words in ("r1 asks a", "a1 ready", "peak a1 600", "r1 ends"):
        measured.say(words)

    assert measured.say("r2 asks b") == "load b2, loading r2"


def test_a_refusal_stands_until_memory_is_freed() -> None:
    lacking = desk()
    lacking.play(
        LOADED
        + """
        reading free=800 a1=400 ->
        r1 asks b -> stop a1, loading r1
        a1 gone   ->
        at 3      -> read
        looked    -> refuse r1 insufficient_vram
        reading free=950 ->
        """
    )
    state = lacking.scheduler.state
    assert memory.refused_lately(state, state.models[B]) is not None

    lacking.play("reading free=954 ->")

    assert memory.refused_lately(state, state.models[B]) is None


@pytest.mark.parametrize("said", ["at 33", "pin z c"])
def test_a_refusal_stands_for_a_while(said: str) -> None:
    lacking = desk()
    lacking.play(
        LOADED
        + """
        reading free=800 a1=400 ->
        r1 asks b -> stop a1, loading r1
        a1 gone   ->
        at 3      -> read
        looked    -> refuse r1 insufficient_vram
        blind     ->
        r2 asks b -> refuse r2 insufficient_vram
        at 32     ->
        r3 asks b -> refuse r3 insufficient_vram
        """
    )
    assert lacking.wake == 33.0

    lacking.say(said)

    assert lacking.say("r4 asks b") == "load b2, loading r4"


def test_a_refusal_names_both_numbers() -> None:
    lacking = desk()
    for words in ("reading free=600", "r1 asks b"):
        lacking.say(words)

    [refuse] = [effect for effect in lacking.effects if isinstance(effect, Refuse)]
    assert "needs 1200 MiB of GPU memory and finds 600 MiB" in refuse.refusal.message
    assert refuse.refusal.retry_after == 30.0


def test_a_load_that_found_no_room_in_the_end_is_told_to_have_failed() -> None:
    lacking = desk()
    lacking.play(
        LOADED
        + """
        reading free=800 a1=400 ->
        r1 asks b -> stop a1, loading r1
        a1 gone   ->
        at 3      -> read
        looked    -> refuse r1 insufficient_vram
        """
    )

    [failed] = [record for record in lacking.records() if record.decision == "swap.failed"]
    assert failed.model == B
    assert "finds 800 MiB" in failed.because


def test_what_is_coming_back_is_told_as_room() -> None:
    lacking = desk()
    for words in ("load x a", "a1 ready", "reading free=700 a1=400", "unload y a", "r1 asks b"):
        lacking.say(words)

    [refuse] = [effect for effect in lacking.effects if isinstance(effect, Refuse)]
    assert "finds 1100 MiB" in refuse.refusal.message


def test_a_swap_shows_that_it_waits_for_memory() -> None:
    waiting = desk()
    waiting.play(
        LOADED
        + """
        reading free=800 a1=400 ->
        r1 asks b -> stop a1, loading r1
        a1 gone   ->
        """
    )

    assert waiting.scheduler.state.swaps[B].phase is SwapPhase.SETTLING


BUDGET = MiB(1200)


def budgeted(sizes: dict[str, int], renders: str = "") -> Spec:
    return spec_of("a b c", sizes=sizes, vram_budget=BUDGET, renders=renders)


def test_a_tightened_ceiling_stops_nothing_that_serves() -> None:
    Desk(budgeted({"a": 600, "b": 500, "c": 400})).play("""
        load x a  -> load a1
        a1 ready  -> answer x done
        load y b  -> load b2
        b2 ready  -> answer y done
        reading free=900 ceiling=800 a1=600 b2=500 ->
        r1 asks a -> grant r1
        r2 asks b -> grant r2
        r1 ends   ->
        r2 ends   ->
        r3 asks c -> stop a1, stop b2, loading r3
        """)


def test_a_loosened_ceiling_helps_who_waits() -> None:
    tight = Desk(budgeted({"a": 600, "b": 500}))
    tight.play("""
        reading free=900 ceiling=800 ->
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        r2 asks b -> r2 at 1
        blind     -> load b2, loading r2
        """)
    assert [r.because for r in tight.records() if r.decision == "memory.ceiling"] == ["none"]


def footprint(desk: Desk, model: ModelId = A) -> int:
    state = desk.scheduler.state
    [view] = [v for v in views.models(state, state.spec, Seconds(0.0)) if v.id == model]
    return view.est_vram


def test_what_was_measured_counts_once_the_child_has_served() -> None:
    measured = Desk(budgeted({"b": 500}))
    seen = []
    for words in (
        "r1 asks a",
        "a1 ready",
        "peak a1 700",
        "peak a1 650",
        "r1 ends",
        "peak a1 800",
        "peak a9 900",
        "peak z1 900",
    ):
        measured.say(words)
        seen.append(footprint(measured))

    assert seen == [0, 0, 0, 0, 700, 800, 800, 800]
    assert measured.say("r2 asks b") == "stop a1, loading r2"


def test_what_was_measured_is_the_size_of_the_next_start() -> None:
    measured = Desk(budgeted({"a": 100, "b": 500}))
    measured.play("""
        r1 asks a   -> load a1, loading r1
        a1 ready    -> grant r1
        r1 ends     ->
        peak a1 701 ->
        unload x a  -> stop a1
        a1 gone     -> answer x done
        load y b    -> load b2
        b2 ready    -> answer y done
        r2 asks a   -> stop b2, loading r2
        """)


def test_a_job_that_is_done_proves_a_child_as_well() -> None:
    measured = Desk(budgeted({"b": 500}))
    for words in ("lease x j1 a", "a1 ready", "peak a1 700", "release y j1"):
        measured.say(words)

    assert footprint(measured) == 700


def test_a_model_that_renders_is_never_smaller_than_its_estimate() -> None:
    measured = Desk(budgeted({"a": 600}, renders="a"))
    seen = []
    for words in ("r1 asks a", "a1 ready", "r1 ends", "peak a1 500", "peak a1 700"):
        measured.say(words)
        seen.append(footprint(measured))

    assert seen == [600, 600, 600, 600, 700]


def test_what_was_measured_in_a_former_life_counts() -> None:
    measured = Desk(budgeted({"b": 500}))
    for argv, peak in ((("child",), 701), (("other",), 900), (("child",), 0)):
        measured.tell(FootprintMeasured(model=A, argv=argv, peak=MiB(peak)))

    assert footprint(measured) == 701
    assert views.footprints(measured.scheduler.state) == {
        (A, ("child",)): 701,
        (A, ("other",)): 900,
    }


def test_a_measured_ram_model_is_left_to_its_pool() -> None:
    pools = Desk(spec_of("a b", groups=(group("g", "a b"),)))
    pools.tell(FootprintMeasured(model=A, argv=("child",), peak=MiB(0), incarnation=Incarnation(1)))

    assert footprint(pools) == 0


def test_who_finds_no_room_because_another_is_busy_again_is_told() -> None:
    # By the estimates d fits where either stops; by the reading it fits in a's place alone. First a is the coldest.
    sizes = {"a": 500, "b": 500, "d": 600}
    holding = SchedulerSpec(hold=Seconds(10.0), hold_on=HoldOn.ALWAYS)
    three = Desk(spec_of("a b d", sizes=sizes, vram_budget=MiB(1100), scheduler=holding))
    three.play("""
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        r2 asks b -> load b2, loading r2
        b2 ready  -> grant r2
        r1 ends   ->
        r2 ends   ->
        reading free=100 a1=500 b2=100 ->
        r3 asks d -> r3 at 1
        r4 asks a -> grant r4, refuse r3 insufficient_vram
        """)


def test_what_a_load_took_until_memory_came_back_does_not_lack() -> None:
    beside = desk({"a": 400, "b": 300, "c": 500}, {"b": "a"})
    beside.play("""
        load x a  -> load a1
        a1 ready  -> answer x done
        reading free=600 a1=400 ->
        r1 asks c -> load c2, loading r1
        r2 asks b -> stop a1, loading r2
        a1 gone   ->
        back a1 400 700 c2=300 -> load b3
        """)


def test_what_a_child_took_that_is_ready_is_seen_when_memory_comes_back() -> None:
    beside = desk({"a": 400, "b": 300, "c": 500}, {"b": "a"})
    beside.play("""
        load x a  -> load a1
        a1 ready  -> answer x done
        reading free=600 a1=400 ->
        r1 asks c -> load c2, loading r1
        c2 ready  -> grant r1
        r2 asks b -> stop a1, loading r2
        a1 gone   ->
        back a1 400 500 c2=500 -> load b3
        """)
    assert not beside.scheduler.state.memory.taking


def test_who_found_no_room_is_tried_when_a_game_has_ended_though_others_took_what_it_had() -> None:
    desk().play("""
        reading free=1300 ->
        at 2      ->
        r1 asks b -> read, loading r1
        reading free=1100 ->
        looked    -> refuse r1 insufficient_vram
        r2 asks b -> refuse r2 insufficient_vram
        r3 asks a -> load a1, loading r3
        a1 ready  -> grant r3
        r3 ends   -> read
        reading free=700 a1=400 ->
        r4 asks b -> refuse r4 insufficient_vram
        reading free=1000 a1=400 ->
        r5 asks b -> stop a1, loading r5
        """)
