"""GPU memory on its way: what others have yet to take, what is coming back, and what no reading shows yet."""

from qmsup.units import MiB
from tests.support.scheduling import Desk, TablePolicy, spec_of

SIZES = {"a": 400, "b": 400, "c": 300, "d": 300}
LOADED = """
    load x a -> load a1
    a1 ready -> answer x done
    """


def desk(sizes: dict[str, int], evicts: dict[str, str]) -> Desk:
    """Models a, b and c; these stop others."""
    return Desk(spec_of("a b c", sizes=sizes), evicts=evicts)


def two_swaps() -> Desk:
    """Both a and c are idle and fill the card; b takes a's place, d takes c's."""
    two = Desk(spec_of("a b c d", sizes=SIZES))
    two.scheduler.state.policy = TablePolicy(table={"b": "a", "d": "c"})
    two.play("""
        load x a  -> load a1
        a1 ready  -> answer x done
        load y c  -> load c2
        c2 ready  -> answer y done
        reading free=0 a1=400 c2=300 ->
        r1 asks b -> stop a1, loading r1
        r2 asks d -> stop c2, loading r2
        a1 gone   ->
        """)
    return two


def test_what_others_that_load_have_yet_to_take_is_not_free() -> None:
    side_by_side = desk({"a": 400, "b": 500, "c": 300}, evicts={})
    side_by_side.play("""
        reading free=1000 ->
        r1 asks a -> load a1, loading r1
        r2 asks b -> load b2, loading r2
        r3 asks c -> r3 at 1
        reading free=900 a1=100 b2=0 ->
        a1 ready  -> grant r1
        reading free=700 a1=300 b2=0 ->
        b2 ready  -> grant r2
        reading free=400 a1=300 b2=300 -> load c3, loading r3
        """)


def test_a_load_that_nobody_wants_is_given_up_for_who_lacks_its_memory() -> None:
    desk({"a": 800, "b": 500}, evicts={}).play("""
        reading free=1000 ->
        r1 asks a -> load a1, loading r1
        r1 leaves ->
        r2 asks b -> r2 at 1, abort a1
        a1 gone   -> load b2, loading r2
        """)


def test_who_waits_for_memory_alone_holds_back_nobody_who_fits() -> None:
    sizes = dict.fromkeys("abcd", 400)
    alike = Desk(spec_of("a b c d", sizes=sizes, vram_budget=MiB(1600)))
    alike.play("""
        reading free=500     ->
        r1 asks a            -> load a1, loading r1
        r2 asks b patience=0 -> r2 at 1
        r3 asks c patience=0 -> r3 at 2
        r4 asks d patience=0 -> r4 at 3
        """)
    assert [c.case.model for c in alike.scheduler.state.closers.named] == ["b", "c", "d"]
    alike.play("reading free=900 a1=400 -> load b2, loading r2, load c3, loading r3")


def test_what_a_swap_stops_is_not_taken_twice() -> None:
    # b takes what a held; so c, which stops nothing, has what was free all along.
    beside = desk({"a": 400, "b": 400, "c": 300}, evicts={"b": "a"})
    beside.play(
        LOADED
        + """
        reading free=300 a1=400 ->
        r1 asks b -> stop a1, loading r1
        r2 asks c -> load c2, loading r2
        """
    )


def test_of_two_that_settle_each_finds_its_own() -> None:
    two_swaps().play("""
        c2 gone   ->
        back a1 400 400 -> load b3
        back c2 300 700 -> load d4
        """)


def test_a_load_takes_only_what_others_have_not_yet_to_claim() -> None:
    # c's memory does not come back; so of what is free, b, which is loading, is about to take all.
    two_swaps().play("""
        back a1 400 400 -> load b3
        c2 gone   ->
        at 3      -> read
        looked    -> refuse r2 insufficient_vram
        """)


def test_a_load_waits_for_news_of_what_has_just_been_loaded() -> None:
    two_swaps().play("""
        back a1 400 400 -> load b3
        c2 gone   ->
        at 2      ->
        b3 ready  -> grant r1
        r1 accepts ->
        at 3      ->
        reading free=0 b3=400 -> refuse r2 insufficient_vram
        """)


def test_only_what_no_reading_shows_is_still_to_be_seen() -> None:
    for sizes, told in (
        ({"a": 400, "b": 600}, "load b2, loading r2"),
        ({"a": 400, "b": 601}, "r2 at 1"),
    ):
        beside = desk(sizes, evicts={})
        beside.play("""
            reading free=1000 ->
            r1 asks a -> load a1, loading r1
            reading free=700 a1=300 ->
            a1 ready  -> grant r1
            """)
        assert beside.say("r2 asks b") == told


def test_who_was_loaded_unseen_makes_room_at_once() -> None:
    desk({"a": 400, "b": 400}, evicts={"b": "a"}).play("""
        reading free=500 ->
        load x a  -> load a1
        a1 ready  -> answer x done
        r2 asks b -> stop a1, loading r2
        a1 gone   ->
        back a1 300 400 -> load b2
        """)


def test_a_child_that_dies_unseen_gives_its_memory_back_too() -> None:
    desk({"a": 400, "b": 400}, evicts={}).play("""
        reading free=500 ->
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        r2 asks b -> r2 at 1
        a1 fails  -> loading r2
        reading free=500 -> load b2
        """)


def test_what_a_child_that_died_unseen_took_is_not_counted_twice() -> None:
    desk({"a": 400, "b": 600, "c": 400}, evicts={"b": "c"}).play("""
        load x c  -> load c1
        c1 ready  -> answer x done
        reading free=500 c1=0 ->
        r1 asks a -> load a2, loading r1
        a2 ready  -> grant r1
        a2 fails  ->
        r2 asks b -> refuse r2 insufficient_vram
        """)


def test_what_comes_back_unseen_is_waited_for_no_longer_than_so_long() -> None:
    desk({"a": 400, "b": 400}, evicts={"b": "a"}).play("""
        reading free=500 ->
        load x a  -> load a1
        at 1      ->
        a1 ready  -> answer x done
        at 2      ->
        r2 asks b -> stop a1, loading r2
        a1 gone   ->
        at 5      -> read
        looked    -> load b2
        """)


def test_what_a_child_took_is_believed_after_a_while() -> None:
    unseen = desk({"a": 400, "b": 400}, evicts={})
    unseen.play("""
        reading free=500 ->
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        r1 accepts ->
        r2 asks b -> r2 at 1
        """)
    assert unseen.wake == 3.0

    unseen.now = 3.0
    assert unseen.say("woke") == "read, loading r2"
    assert unseen.say("looked") == "load b2"


def test_a_swap_that_is_given_up_takes_nothing() -> None:
    sizes = {"a": 400, "b": 800, "c": 400, "d": 300}
    four = Desk(spec_of("a b c d", sizes=sizes), evicts={"b": "a", "d": "b"})
    four.play("""
        load x a  -> load a1
        a1 ready  -> answer x done
        reading free=500 a1=400 ->
        r1 asks b -> stop a1, loading r1
        r2 asks c -> r2 at 1
        r1 leaves -> load c2, loading r2
        """)
