"""Before a spawn the memory is read anew, unless that has just been done: a game may have begun since.

`read` has it read, `looked` says that this is done; what has changed is told before.
"""

from qmsup.core.scheduling import explanation, views
from qmsup.core.scheduling.line import Because
from qmsup.core.scheduling.records import SwapPhase
from qmsup.ids import ModelId, RequestId
from qmsup.units import Seconds
from tests.support.scheduling import Desk, spec_of

SIZES = {"a": 400, "b": 300}


def desk(told: str = "", evicts: dict[str, str] | None = None) -> Desk:
    """Models a and b, and c of unknown size; 1000 MiB were free two seconds ago."""
    made = Desk(spec_of("a b c v", sizes=SIZES, renders="v"), evicts=evicts or {})
    made.play("reading free=1000 ->\nat 2 ->\n" + told)
    return made


def test_a_load_begins_once_it_has_been_read() -> None:
    desk("""
        r1 asks a -> read, loading r1
        looked    -> load a1
        a1 ready  -> grant r1
        """)


def test_a_game_that_has_begun_since_is_seen() -> None:
    desk("""
        r1 asks a -> read, loading r1
        reading free=300 ->
        looked    -> refuse r1 insufficient_vram
        """)


def test_who_joins_meanwhile_is_served_too() -> None:
    desk("""
        r1 asks a -> read, loading r1
        r2 asks a -> loading r2
        looked    -> load a1
        a1 ready  -> grant r1, grant r2
        """)


def test_a_reading_that_does_not_come_holds_nobody_up_for_long() -> None:
    late = desk("""
        r1 asks a -> read, loading r1
        at 2.5    -> load a1
        looked    ->
        """)
    assert late.scheduler.state.memory.looking is None


def test_one_reading_is_for_all_who_wait_for_it() -> None:
    desk("""
        r1 asks a -> read, loading r1
        r2 asks b -> loading r2
        looked    -> load a1, load b2
        """)


def test_each_finds_what_the_others_leave() -> None:
    desk("""
        reading free=600 ->
        at 4      ->
        r1 asks a -> read, loading r1
        r2 asks b -> r2 at 1
        looked    -> load a1
        """)


def test_what_was_read_just_now_is_good_enough() -> None:
    desk("""
        reading free=1000 ->
        at 2.2    ->
        r1 asks a -> load a1, loading r1
        at 2.4    ->
        r2 asks b -> read, loading r2
        """)


def test_memory_that_came_back_just_now_was_read() -> None:
    desk(
        """
        load x a  -> read
        looked    -> load a1
        a1 ready  -> answer x done
        reading free=600 a1=400 ->
        at 9      ->
        r1 asks b -> stop a1, loading r1
        at 10     ->
        a1 gone   ->
        at 11     ->
        back a1 400 1000 -> load b2
        """,
        evicts={"b": "a"},
    )


def test_after_a_stop_it_is_read_once_what_stopped_is_gone() -> None:
    desk(
        """
        load x a  -> read
        looked    -> load a1
        a1 ready  -> answer x done
        reading free=600 a1=0 ->
        at 9      ->
        r1 asks b -> stop a1, loading r1
        a1 gone   -> read
        looked    -> load b2
        """,
        evicts={"b": "a"},
    )


def test_nothing_is_read_for_what_has_no_size_or_where_no_reading_is_trusted() -> None:
    desk("r1 asks c -> load c1, loading r1")
    desk("blind ->\nr1 asks a -> load a1, loading r1")


def test_a_card_that_cannot_be_read_any_more_is_no_reason_to_wait() -> None:
    desk("""
        r1 asks a -> read, loading r1
        blind     ->
        looked    -> load a1
        """)


def test_a_load_given_up_meanwhile_ends() -> None:
    desk("""
        r1 asks a  -> read, loading r1
        unload x a -> refuse r1 model_unloaded, answer x done
        looked     ->
        r2 asks a  -> load a1, loading r2
        """)


def test_what_is_given_up_for_another_does_not_load() -> None:
    desk(
        """
        r1 asks a  -> read, loading r1
        r1 leaves  ->
        r2 asks b  -> r2 at 1, loading r2
        looked     -> load b1
        """,
        evicts={"b": "a", "a": "b"},
    )


def test_a_render_that_begins_meanwhile_comes_first() -> None:
    desk("""
        load x v  -> load v1
        v1 ready  -> answer x done
        r1 asks a -> read, loading r1
        r2 asks v -> grant r2
        looked    ->
        r2 ends   -> read, load a2
        """)


def test_nobody_is_refused_by_a_reading_that_is_old() -> None:
    """A game that took the memory may have ended since."""
    desk("""
        reading free=300 ->
        at 9      ->
        r1 asks a -> read, r1 at 1
        r2 asks a -> r2 at 2
        reading free=1000 -> load a1, loading r1, loading r2
        looked    ->
        """)


def test_who_finds_no_room_by_the_new_one_either_is_refused() -> None:
    desk("""
        reading free=300 ->
        at 9      ->
        r1 asks a -> read, r1 at 1
        r2 asks b -> loading r2
        looked    -> load b1, refuse r1 insufficient_vram
        """)


def test_where_none_comes_the_old_one_decides_after_a_moment() -> None:
    desk("""
        reading free=300 ->
        at 9      ->
        r1 asks a -> read, r1 at 1
        at 9.5    -> refuse r1 insufficient_vram
        r2 asks a -> refuse r2 insufficient_vram
        at 10     ->
        r3 asks a -> read, r3 at 1
        """)


def test_nothing_is_stopped_meanwhile() -> None:
    desk(
        """
        load x a  -> read
        looked    -> load a1
        a1 ready  -> answer x done
        reading free=0 a1=100 ->
        at 9      ->
        r1 asks b -> read, r1 at 1
        looked    -> refuse r1 insufficient_vram
        """,
        evicts={"b": "a"},
    )


def test_one_that_is_past_its_patience_closes_nothing_for_it() -> None:
    desk("""
        reading free=300 ->
        at 9                  ->
        r1 asks a patience=0  -> read, r1 at 1
        r2 asks v             -> load v1, loading r2
        """)


def test_whoever_waits_for_it_is_told_so() -> None:
    waits = desk("reading free=300 ->\nat 9 ->\nr1 asks a -> read, r1 at 1")

    [place] = views.line(waits.scheduler.state, Seconds(9.0))
    assert (place.because, place.behind) == (Because.LOOKING, (ModelId("a"),))


def test_whoever_asks_is_told() -> None:
    waits = desk("r1 asks a -> read, loading r1")
    state = waits.scheduler.state

    assert state.swaps[ModelId("a")].phase is SwapPhase.LOOKING
    [told] = explanation.of_waiter(state, RequestId("r1"), Seconds(2.1))
    assert "it is being looked whether the GPU has room for it; 1 request" in told
