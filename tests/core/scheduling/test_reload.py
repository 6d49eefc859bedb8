"""A new configuration comes: what runs keeps running, what is no longer named ends."""

from dataclasses import replace

from qmsup.core.scheduling import views
from qmsup.core.scheduling.events import ConfigApplied
from qmsup.ids import ModelId
from qmsup.spec import SchedulerSpec, Spec
from qmsup.units import MiB, Seconds
from tests.support.scheduling import Desk, group, spec_of

BUDGET = MiB(10)
SIZES = {"a": 6, "b": 5, "c": 4}


def apply(desk: Desk, spec: Spec) -> str:
    desk.tell(ConfigApplied(spec=spec))
    return desk.told()


def states(desk: Desk) -> str:
    state = desk.scheduler.state
    return " ".join(f"{v.id}:{v.state}" for v in views.models(state, state.spec, Seconds(0.0)))


def test_waiters_of_a_removed_model_are_told_at_once() -> None:
    desk = Desk(spec_of("a b"))
    desk.play("""
        r1 asks a  -> load a1, loading r1
        r2 asks b  -> r2 at 1
        """)

    assert apply(desk, spec_of("a")) == "refuse r2 model_not_found"
    assert desk.say("r3 asks b") == "refuse r3 model_not_found"


def test_what_a_slot_holds_is_known_until_the_model_is_another() -> None:
    desk = Desk(spec_of("a b"))
    desk.play("""
        r1 asks a       -> load a1, loading r1
        a1 ready 4 2048 -> grant r1
        r1 ends         ->
        """)
    model = desk.scheduler.state.models[ModelId("a")]

    apply(desk, spec_of("a b c"))
    assert model.context == 2048
    spec = spec_of("a b")
    a = replace(spec.models[ModelId("a")], argv=("other",))
    apply(desk, replace(spec, models={**spec.models, ModelId("a"): a}))
    assert model.context is None


def test_a_removed_model_that_loads_is_given_up() -> None:
    desk = Desk(spec_of("a b"))
    desk.play("r1 asks a -> load a1, loading r1")

    assert apply(desk, spec_of("b")) == "refuse r1 model_not_found, stop a1"
    assert states(desk) == "b:stopped a:stopping"
    assert desk.say("a1 gone") == ""
    assert states(desk) == "b:stopped"


def test_a_removed_model_that_makes_room_is_given_up() -> None:
    desk = Desk(spec_of("a b"))
    desk.play("""
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        r1 ends   ->
        r2 asks b -> stop a1, loading r2
        """)

    assert apply(desk, spec_of("a")) == "refuse r2 model_not_found"
    assert desk.say("a1 gone") == ""
    assert states(desk) == "a:stopped"


def test_a_removed_model_serves_what_it_has_and_stops() -> None:
    desk = Desk(spec_of("a b"))
    desk.play("""
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        """)

    assert apply(desk, spec_of("b")) == ""
    assert apply(desk, spec_of("b c")) == ""
    desk.play("""
        r2 asks b -> r2 at 1
        r3 asks a -> refuse r3 model_not_found
        load x a  -> answer x model_not_found
        lease y j1 a -> answer y model_not_found
        r1 ends   -> stop a1, loading r2
        r4 asks a -> refuse r4 model_not_found
        a1 gone   -> load b2
        """)
    assert states(desk) == "b:starting c:stopped"


def test_an_idle_removed_model_stops_at_once() -> None:
    desk = Desk(spec_of("a b"))
    desk.play("""
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        r1 ends   ->
        """)

    assert apply(desk, spec_of("b")) == "stop a1"


def test_a_removed_model_that_crashed_is_forgotten_with_its_last_lease() -> None:
    desk = Desk(spec_of("a b"))
    desk.play("""
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        """)
    apply(desk, spec_of("b"))
    desk.play("a1 fails ->")

    assert states(desk) == "b:stopped a:failed"
    desk.play("r1 ends ->")
    assert states(desk) == "b:stopped"
    assert desk.say("r1 ends") == ""


def test_the_answer_of_a_child_whose_model_is_forgotten_is_harmless() -> None:
    desk = Desk(spec_of("a b"))
    desk.play("""
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        at 5      ->
        """)
    apply(desk, spec_of("b"))
    desk.play("""
        a1 gone    ->
        a1 gone    ->
        r1 ends    ->
        r1 accepts ->
        """)


def test_a_model_named_again_goes_on() -> None:
    desk = Desk(spec_of("a b"))
    desk.play("""
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        """)
    apply(desk, spec_of("b"))
    apply(desk, spec_of("a b"))

    desk.play("""
        r2 asks a -> grant r2
        r1 ends   ->
        r2 ends   ->
        """)


def test_a_raised_budget_drains_the_line() -> None:
    desk = Desk(spec_of("a b", sizes=SIZES, vram_budget=BUDGET))
    desk.play("""
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        r2 asks b -> r2 at 1
        """)

    assert apply(desk, spec_of("a b", sizes=SIZES, vram_budget=MiB(11))) == "load b2, loading r2"


def test_a_kept_model_is_charged_by_what_it_runs_with_until_it_ends() -> None:
    desk = Desk(spec_of("a b", sizes=SIZES, vram_budget=BUDGET))
    desk.play("""
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        """)
    smaller = spec_of("a b", sizes={"a": 1, "b": 5}, vram_budget=BUDGET)

    apply(desk, smaller)

    desk.play("""
        r2 asks b -> r2 at 1
        r1 ends   -> stop a1, loading r2
        a1 gone   -> load b2
        b2 ready  -> grant r2
        r3 asks a -> load a3, loading r3
        """)


def test_a_removed_model_keeps_its_group_until_it_is_gone() -> None:
    stays = group("stays", "a", persistent=True)
    desk = Desk(spec_of("a b", groups=(stays,)))
    desk.play("""
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        """)

    apply(desk, spec_of("b"))

    assert desk.say("r2 asks b") == "load b2, loading r2"


def test_a_removed_busy_model_makes_room_before_others() -> None:
    desk = Desk(spec_of("a b c"), evicts={})
    desk.play("""
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        r2 asks b -> load b2, loading r2
        b2 ready  -> grant r2
        """)

    apply(desk, spec_of("a c"))

    assert desk.scheduler.state.running_beside(ModelId("c")) == ("b", "a")


def test_other_priorities_and_slots_count_at_once() -> None:
    desk = Desk(spec_of("a b c", slots=1))
    desk.play("""
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        r2 asks a -> r2 at 1
        r3 asks b -> r3 at 2
        r4 asks c -> r4 at 3
        """)
    hot_c = SchedulerSpec(priority={ModelId("c"): 1})

    assert apply(desk, replace(spec_of("a b c", slots=2), scheduler=hot_c)) == "grant r2"
    line = views.line(desk.scheduler.state, Seconds(0.0))
    assert [place.request for place in line] == ["r4", "r3"]


def limit_after(spec: Spec, *, has: int, **changes: object) -> int:
    """A child of a model, started by `spec`, has told of so many slots; then this changes."""
    desk = Desk(spec)
    desk.play(f"""
        load x a   -> load a1
        a1 ready {has} -> answer x done
        """)
    changed = replace(spec.models[ModelId("a")], **changes)  # type: ignore[arg-type]
    apply(desk, replace(spec, models={changed.id: changed}))
    return desk.scheduler.state.models[changed.id].limit


def test_new_arguments_make_no_room_in_a_child_that_runs_with_older_ones() -> None:
    said = spec_of("a", slots=2)
    guessed = replace(said.models[ModelId("a")], slots=4, slots_from_child=True)
    told = replace(said, models={guessed.id: guessed})

    assert limit_after(said, has=9, slots=3) == 3, "concurrencyLimit counts at once"
    assert limit_after(said, has=9, slots=3, argv=("child", "-np", "3")) == 2
    assert limit_after(said, has=9, slots=3, env=("LLAMA_ARG_N_PARALLEL=3",)) == 2
    assert limit_after(said, has=9, slots=1, argv=("child", "-np", "1")) == 1
    assert (
        limit_after(told, has=3, slots=9, slots_from_child=False, argv=("child", "-np", "9")) == 3
    )


def beside_a_restarted(*, was: int, now: int) -> str:
    """A model of 5 MiB is asked for beside `a`, whose child was stopping when its size became another."""
    desk = Desk(spec_of("a b", sizes={"a": was, "b": 5}, vram_budget=BUDGET))
    desk.play("""
        load x a   -> load a1
        a1 ready   -> answer x done
        unload y a -> stop a1
        """)
    apply(desk, spec_of("a b", sizes={"a": now, "b": 5}, vram_budget=BUDGET))
    desk.play("""
        r1 asks a -> load a2, loading r1
        a1 gone   -> answer y done
        a2 ready  -> grant r1
        """)
    return desk.say("r2 asks b")


def test_what_starts_anew_while_it_stops_is_charged_by_what_it_starts_with() -> None:
    assert beside_a_restarted(was=6, now=2) == "load b3, loading r2"
    assert beside_a_restarted(was=2, now=6) == "r2 at 1"


def test_what_starts_with_less_than_it_stops_with_makes_room_for_who_waits() -> None:
    sizes = {"a": 6, "b": 4, "c": 2, "d": 4}
    desk = Desk(spec_of("a b c d", sizes=sizes, vram_budget=MiB(12)))
    desk.play("""
        load x b   -> load b1
        b1 ready   -> answer x done
        load y a   -> load a2
        a2 ready   -> answer y done
        r1 asks d  -> stop b1, loading r1
        unload z a -> stop a2
        """)
    apply(desk, spec_of("a b c d", sizes={**sizes, "a": 2}, vram_budget=MiB(12)))
    desk.play("""
        r2 asks c -> r2 at 1
        r3 asks a -> load a3, loading r3, load c4, loading r2
        """)


def test_a_pin_ends_with_the_model_it_is_on() -> None:
    desk = Desk(spec_of("a b"))
    desk.play("""
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        pin x a   -> answer x done
        """)

    apply(desk, spec_of("b"))
    assert [r.decision for r in desk.records()] == ["model.unpinned", "config.applied"]
    desk.play("""
        r2 asks b -> r2 at 1
        r1 ends   -> stop a1, loading r2
        """)
