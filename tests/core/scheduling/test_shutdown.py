"""The scheduler ends: what is in flight gets its time, then children are stopped or kept."""

from qmsup.core.scheduling.effects import EndProcess
from qmsup.spec import OnExit
from tests.support.scheduling import Desk, spec_of


def serving(on_exit: OnExit) -> Desk:
    """a1 serves r1, b2 is idle."""
    desk = Desk(spec_of("a b c", on_exit=on_exit), evicts={})
    desk.play("""
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        r1 accepts ->
        r2 asks b  -> load b2, loading r2
        b2 ready   -> grant r2
        r2 ends    ->
        """)
    return desk


def test_nothing_running_it_ends_at_once() -> None:
    Desk(spec_of("a")).play("""
        shutdown  -> end
        shutdown  ->
        r1 asks a -> refuse r1 shutting_down
        """)


def test_each_child_stops_when_it_is_idle() -> None:
    serving(OnExit.STOP).play("""
        shutdown   -> stop b2
        b2 gone    ->
        r1 ends    -> stop a1
        a1 gone    -> end
        """)


def test_what_is_still_in_flight_is_cut_after_its_time() -> None:
    desk = serving(OnExit.STOP)
    desk.play("""
        shutdown   -> stop b2
        b2 gone    ->
        at 5       -> cut r1 shutting_down, stop a1
        a1 fails   -> end
        """)

    assert desk.wake is None


def test_kept_children_are_not_stopped() -> None:
    serving(OnExit.KEEP).play("""
        shutdown   ->
        load x c   -> answer x shutting_down
        r1 ends    -> end
        """)


def test_with_kept_children_a_stream_outlives_the_scheduler() -> None:
    serving(OnExit.KEEP).play("""
        shutdown   ->
        at 5       -> end
        """)


def test_a_kept_start_goes_on_for_nobody() -> None:
    Desk(spec_of("a", on_exit=OnExit.KEEP)).play("""
        load x a   -> load a1
        r1 asks a  -> loading r1
        shutdown   -> answer x shutting_down, refuse r1 shutting_down, end
        a1 ready   ->
        """)


def test_who_waits_for_an_unload_is_answered_either_way() -> None:
    desk = serving(OnExit.STOP)
    desk.play("""
        unload x b -> stop b2
        shutdown   ->
        r1 ends    -> stop a1
        b2 gone    -> answer x done
        a1 gone    -> end
        """)

    kept = serving(OnExit.KEEP)
    kept.play("""
        drain x a  ->
        shutdown   ->
        at 5       -> answer x shutting_down, end
        """)
    assert [type(e) for e in kept.effects].count(EndProcess) == 1


def test_a_client_that_only_waits_for_an_unload_does_not_hold_it_up() -> None:
    serving(OnExit.KEEP).play("""
        unload x b -> stop b2
        load y c   -> load c3
        shutdown   -> answer y shutting_down
        r1 ends    -> answer x shutting_down, end
        """)
