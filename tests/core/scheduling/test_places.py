"""Waiters hear where they stand: at once when they come, and now and then when the line moves."""

from qmsup.core.scheduling import views
from qmsup.core.scheduling.effects import LineMoved
from qmsup.ids import ModelId
from qmsup.spec import SchedulerSpec
from qmsup.units import Seconds
from tests.support.scheduling import Desk, spec_of


def crowd() -> Desk:
    """r1 is served by a, one at a time; r2 … r5 wait for it, r4 does not stream."""
    desk = Desk(spec_of("a b", slots=1))
    desk.play("""
        r1 asks a           -> load a1, loading r1
        a1 ready            -> grant r1
        r1 accepts          ->
        r2 asks a streaming -> r2 at 1
        r3 asks a streaming -> r3 at 2
        r4 asks a           -> r4 at 3
        r5 asks a streaming from=w2 -> r5 at 4
        """)
    return desk


def test_one_message_for_each_worker_and_not_too_often() -> None:
    desk = crowd()

    desk.play("""
        r1 ends    -> grant r2, r3 at 1, r5 at 3
        r2 ends    -> grant r3
        """)
    assert desk.wake == 0.25
    desk.play("""
        at 0.2     ->
        r3 ends    -> grant r4
        at 0.25    -> r5 at 1
        """)
    assert desk.wake == 5.2


def test_nobody_is_told_what_has_not_changed() -> None:
    desk = crowd()
    desk.play("r5 leaves ->")

    desk.play("""
        at 1       ->
        r4 leaves  ->
        at 2       ->
        r2 leaves  -> r3 at 1
        """)


def test_the_next_time_is_forgotten_when_nobody_is_left_to_tell() -> None:
    desk = crowd()
    desk.play("""
        r1 ends    -> grant r2, r3 at 1, r5 at 3
        r2 accepts ->
        r3 leaves  ->
        """)
    assert desk.wake == 0.25

    desk.play("r5 leaves ->")

    assert desk.wake == 300.0, "the patience of the one who is left"


def test_a_silent_worker_is_not_told() -> None:
    desk = crowd()

    desk.play("""
        w2 silent  ->
        at 1       ->
        r2 leaves  -> r3 at 1
        """)


def test_an_arrival_of_higher_priority_moves_those_behind() -> None:
    desk = Desk(spec_of("a b c", scheduler=SchedulerSpec(priority={ModelId("c"): 5})))
    desk.play("""
        r1 asks a           -> load a1, loading r1
        r2 asks b streaming -> r2 at 1
        r3 asks c streaming -> r3 at 1
        """)
    assert desk.wake == 0.25
    desk.play("at 0.25 -> r2 at 2")


def test_who_waits_stands_by_priority_and_then_as_it_came() -> None:
    priority = {ModelId("A"): 10, ModelId("B"): 5, ModelId("C"): 5, ModelId("D"): 1}
    desk = Desk(spec_of("z A B C D", scheduler=SchedulerSpec(priority=priority)))
    desk.play("""
        r0 asks z -> load z1, loading r0
        r1 asks B -> r1 at 1
        r2 asks D -> r2 at 2
        r3 asks C -> r3 at 2
        r4 asks A -> r4 at 1
        """)

    line = views.line(desk.scheduler.state, Seconds(0.0))
    assert [(place.place, place.model) for place in line] == [
        (1, "A"),
        (2, "B"),
        (3, "C"),
        (4, "D"),
    ]
    desk.play("""
        z1 ready  -> grant r0
        r0 ends   -> stop z1, loading r4
        z1 gone   -> load A2
        A2 ready  -> grant r4
        r4 ends   -> stop A2, loading r1
        """)


def test_with_its_first_place_each_hears_whether_its_model_was_ready() -> None:
    desk = crowd()
    moved = []
    for ask in ("r6 asks a streaming", "r7 asks b streaming"):
        desk.say(ask)
        moved += [effect for effect in desk.effects if isinstance(effect, LineMoved)]

    assert [(effect.places[0][0], effect.was_ready) for effect in moved] == [
        ("r6", True),
        ("r7", False),
    ]
