"""The scheduler ends: what is in flight gets its time, then children are stopped or kept."""

from qmsup.ids import LeaseId, RequestId
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


def test_that_time_counts_from_when_the_end_was_asked_for() -> None:
    serving(OnExit.STOP).play("""
        at 60      ->
        shutdown   -> stop b2
        at 64.9    ->
        at 65      -> cut r1 shutting_down, stop a1
        """)


def test_a_use_that_outlives_its_child_has_its_time_too() -> None:
    desk = serving(OnExit.STOP)
    desk.play("""
        a1 fails   ->
        shutdown   -> stop b2
        b2 gone    ->
        r1 ends    -> end
        """)


def test_with_kept_children_it_ends_at_once_and_leaves_all_as_it_is() -> None:
    desk = serving(OnExit.KEEP)
    desk.play("""
        r3 asks c   -> load c3, loading r3
        shutdown    -> end
        load x c    ->
        c3 ready    ->
        r4 asks a   ->
        r1 ends     ->
        shutdown    ->
        """)

    assert desk.wake is None
    state = desk.scheduler.state
    assert RequestId("r3") in state.waiters
    assert LeaseId("r1") in state.leases


def test_who_waits_for_an_unload_is_answered_either_way() -> None:
    desk = serving(OnExit.STOP)
    desk.play("""
        unload x b -> stop b2
        shutdown   ->
        r1 ends    -> stop a1
        b2 gone    -> answer x done
        a1 gone    -> end
        """)
