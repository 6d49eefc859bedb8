"""After a reload: what the new configuration would not let stand together is set right, without haste."""

from dataclasses import replace

from qmsup.core.scheduling import law
from qmsup.core.scheduling.events import ConfigApplied
from qmsup.ids import LeaseId, ModelId
from qmsup.spec import AllOf, HoldOn, MatrixSpec, OnExit, SchedulerSpec, Spec
from qmsup.units import MiB, Seconds
from tests.support.scheduling import Desk, group, spec_of

A, B, C = (ModelId(m) for m in "abc")
SIZES = {"a": 5, "b": 4, "c": 3}
ROOMY = spec_of("a b c", sizes=SIZES, vram_budget=MiB(12))


def apply(desk: Desk, spec: Spec) -> str:
    desk.tell(ConfigApplied(spec=spec))
    return desk.told()


def budget(size: int, spec: Spec = ROOMY) -> Spec:
    return replace(spec, vram_budget=MiB(size))


HOLDING = replace(ROOMY, scheduler=SchedulerSpec(hold=Seconds(10.0), hold_on=HoldOn.ALWAYS))


def full(spec: Spec = ROOMY) -> Desk:
    """a, b and c run, used in this order; nobody uses them now."""
    desk = Desk(spec)
    for number, model in enumerate("abc", 1):
        desk.play(f"""
            r{number} asks {model} -> load {model}{number}, loading r{number}
            {model}{number} ready -> grant r{number}
            r{number} ends ->
            """)
    return desk


def test_a_lowered_budget_stops_the_coldest_until_the_rest_fits() -> None:
    assert apply(full(), budget(8)) == "stop a1"
    assert apply(full(), budget(7)) == "stop a1"
    assert apply(full(), budget(6)) == "stop a1, stop b2"
    assert apply(full(), budget(12)) == ""


def test_the_hottest_stays_though_it_is_too_large_as_it_would_if_it_were_loaded() -> None:
    desk = full()
    desk.play("""
        r4 asks a -> grant r4
        r4 ends   ->
        """)

    assert apply(desk, budget(4)) == "stop b2, stop c3"


def test_what_is_used_stops_when_it_is_idle() -> None:
    desk = full()
    desk.play("""
        r4 asks a -> grant r4
        r5 asks b -> grant r5
        r6 asks c -> grant r6
        """)

    assert apply(desk, budget(7)) == ""
    desk.play("""
        r7 asks b -> grant r7
        r6 ends   ->
        r5 ends   ->
        r7 ends   -> stop c3, stop b2
        r4 ends   ->
        """)


def test_who_waits_for_a_place_in_it_is_served_first() -> None:
    narrow = spec_of("a b c", slots=1, sizes=SIZES, vram_budget=MiB(12))
    desk = full(narrow)
    desk.play("""
        r4 asks a -> grant r4
        r5 asks a -> r5 at 1
        r6 asks b -> grant r6
        """)

    assert apply(desk, budget(5, narrow)) == "stop c3"
    desk.play("""
        r4 ends   -> grant r5
        r5 ends   -> stop a1
        """)


def test_what_should_have_stopped_is_noticed() -> None:
    desk = full()
    desk.play("""
        r4 asks a -> grant r4
        r5 asks b -> grant r5
        """)
    apply(desk, budget(5))
    state = desk.scheduler.state
    assert law.overdue(state) == ()

    del state.models[A].leases[LeaseId("r4")]

    assert law.overdue(state) == (A,)


def test_what_fits_again_by_itself_is_left_alone() -> None:
    desk = full()
    desk.play("""
        r4 asks a -> grant r4
        r5 asks b -> grant r5
        r6 asks c -> grant r6
        """)
    apply(desk, budget(9))

    desk.play("""
        c3 fails  ->
        r5 ends   ->
        r4 ends   ->
        r7 asks c -> stop a1, loading r7
        """)


def test_a_hold_keeps_it_until_it_ends() -> None:
    desk = full(HOLDING)

    assert apply(desk, budget(9, HOLDING)) == ""
    assert desk.wake == 10.0
    desk.now = 10.0
    assert desk.say("woke") == "stop a1"


def test_another_reload_sets_aside_what_was_begun() -> None:
    desk = full(HOLDING)
    apply(desk, budget(9, HOLDING))

    assert apply(desk, HOLDING) == ""

    assert desk.wake is None


def test_a_load_under_way_goes_on_and_has_a_place() -> None:
    desk = full()
    desk.play("""
        unload x a -> stop a1
        r4 asks a  -> load a4, loading r4
        a1 gone    -> answer x done
        """)

    assert apply(desk, budget(8)) == "stop b2"
    assert apply(desk, budget(4)) == "stop c3"
    assert desk.say("a4 ready") == "grant r4"
    assert desk.say("r4 ends") == ""


def test_other_groups_stop_what_may_not_stand_beside_the_hottest() -> None:
    free = full(spec_of("a b c", groups=(group("g", "a b c", swap=False),)))

    assert apply(free, spec_of("a b c", groups=(group("g", "b c", swap=False),))) == "stop a1"


def test_an_order_of_loading_in_which_they_stand_together_will_do() -> None:
    # Loading a stops b, but loading b does not stop a.
    one_way = (group("g", "a"), group("h", "b c", swap=False, exclusive=False))
    apart = spec_of("a b c", groups=(group("g", "a b c", swap=False),))

    assert apply(full(apart), spec_of("a b c", groups=one_way)) == ""


def test_persistent_and_pinned_models_stay_and_others_go() -> None:
    stays = (group("g", "a", persistent=True),)
    assert apply(full(), budget(9, replace(ROOMY, groups=stays))) == "stop b2"

    pinned = full()
    pinned.play("pin x a -> answer x done")
    assert apply(pinned, budget(9)) == "stop b2"


def test_a_group_alone_makes_nothing_persistent() -> None:
    together = replace(ROOMY, groups=(group("g", "a b c", swap=False),))

    assert apply(full(together), budget(9, together)) == "stop a1"


def test_a_matrix_counts_too() -> None:
    matrix = MatrixSpec(sets={"s": AllOf((B, C)), "t": A})

    assert apply(full(), spec_of("a b c", matrix=matrix)) == "stop a1"


def test_removed_models_go_by_themselves() -> None:
    desk = full()
    desk.play("r4 asks a -> grant r4")

    assert apply(desk, spec_of("b c", sizes=SIZES, vram_budget=MiB(7))) == ""


def test_who_runs_by_older_arguments_is_charged_by_those() -> None:
    smaller = spec_of("a b c", sizes={"a": 1, "b": 1, "c": 1}, vram_budget=MiB(9))

    assert apply(full(), smaller) == "stop a1"


def test_a_tightened_ceiling_is_no_law() -> None:
    desk = full()
    desk.play("reading free=0 ceiling=3 a1=5 b2=4 c3=3 ->")

    assert apply(desk, ROOMY) == ""


def test_at_the_end_children_that_are_kept_are_left_alone() -> None:
    desk = full()
    desk.play("r4 asks a -> grant r4")
    desk.play("r5 asks b -> grant r5")
    desk.play("r6 asks c -> grant r6")
    apply(desk, budget(4, replace(ROOMY, on_exit=OnExit.KEEP)))

    desk.play("""
        shutdown -> end
        r4 ends  ->
        r5 ends  ->
        r6 ends  ->
        """)


def test_it_is_recorded_by_which_policy() -> None:
    desk = full()
    apply(desk, budget(9))

    told = [(r.decision, r.model, r.because) for r in desk.records()]
    assert ("model.unlawful", "a", "budget") in told


def test_the_end_of_a_hold_after_the_end_changes_nothing() -> None:
    desk = full(replace(HOLDING, on_exit=OnExit.KEEP))
    apply(desk, budget(9, replace(HOLDING, on_exit=OnExit.KEEP)))
    assert desk.say("shutdown") == "end"

    desk.now = 10.0
    assert desk.say("woke") == ""


def test_the_end_of_a_hold_on_what_the_end_has_stopped_changes_nothing() -> None:
    desk = full(HOLDING)
    desk.play("""
        r4 asks c  -> grant r4
        r4 accepts ->
        """)
    assert apply(desk, budget(9, HOLDING)) == ""

    desk.play("""
        at 6       ->
        shutdown   -> stop a1, stop b2
        at 10      ->
        r4 ends    -> stop c3
        """)
