"""Who makes room first: what stops already, then what idles, the least recently used first, then what is busy."""

from qmsup.ids import ModelId
from qmsup.units import MiB
from tests.support.scheduling import Desk, spec_of

D = ModelId("d")


def loaded(models: str) -> Desk:
    """Each model was loaded for a control client, in this order, and never served."""
    desk = Desk(spec_of(f"{models} d"), evicts={})
    for number, model in enumerate(models.split(), 1):
        desk.play(f"""
            load {model}ask {model} -> load {model}{number}
            {model}{number} ready   -> answer {model}ask done
            """)
    return desk


def serve(desk: Desk, model: str, request: str, *, ends: bool = True) -> None:
    desk.play(f"{request} asks {model} -> grant {request}")
    if ends:
        desk.play(f"{request} ends ->")


def test_the_least_recently_used_comes_first() -> None:
    desk = loaded("a b c")
    for number, model in enumerate("cba"):
        serve(desk, model, f"r{number}")

    assert desk.scheduler.state.running_beside(D) == ("c", "b", "a")


def test_a_load_is_a_use() -> None:
    assert loaded("z a m").scheduler.state.running_beside(D) == ("z", "a", "m")


def test_a_job_is_a_use_from_when_it_is_taken() -> None:
    desk = loaded("a b c")
    desk.play("""
        lease x j1 b -> answer x done
        release y j1 -> answer y done
        """)

    assert desk.scheduler.state.running_beside(D) == ("a", "c", "b")


def test_among_the_never_used_the_name_decides() -> None:
    desk = loaded("z m a")
    serve(desk, "m", "r1")
    state = desk.scheduler.state
    for model in "za":
        state.models[ModelId(model)].last_use = 0
    state.reorder()

    assert state.running_beside(D) == ("a", "z", "m")


def test_a_busy_colder_model_comes_after_an_idle_hotter_one() -> None:
    desk = loaded("a b")
    serve(desk, "a", "r1", ends=False)
    serve(desk, "b", "r2")

    assert desk.scheduler.state.running_beside(D) == ("b", "a")
    desk.play("r1 ends ->")
    assert desk.scheduler.state.running_beside(D) == ("a", "b")


def test_what_stops_already_comes_first() -> None:
    desk = loaded("a b")
    desk.play("unload x b -> stop b2")

    assert desk.scheduler.state.running_beside(D) == ("b", "a")


def test_a_model_that_starts_again_does_not_stop_already() -> None:
    desk = loaded("a b")
    desk.play("""
        unload x b -> stop b2
        r1 asks b  -> load b3, loading r1
        """)

    assert desk.scheduler.state.running_beside(D) == ("a", "b")
    assert desk.scheduler.state.running_beside(ModelId("b")) == ("a",)


def test_a_budget_takes_from_the_cold_end() -> None:
    sizes = {"a": 5, "b": 5, "c": 5}
    desk = Desk(spec_of("a b c", sizes=sizes, vram_budget=MiB(10)))

    desk.play("""
        r1 asks a -> load a1, loading r1
        r2 asks b -> load b2, loading r2
        a1 ready  -> grant r1
        b2 ready  -> grant r2
        r1 ends   ->
        r2 ends   ->
        r3 asks a -> grant r3
        r3 ends   ->
        r4 asks c -> stop b2, loading r4
        b2 gone   -> load c3
        c3 ready  -> grant r4
        """)


def test_a_budget_takes_the_idle_before_a_colder_busy_one() -> None:
    sizes = {"a": 5, "b": 5, "c": 5}
    desk = Desk(spec_of("a b c", sizes=sizes, vram_budget=MiB(10)))

    desk.play("""
        r1 asks a -> load a1, loading r1
        r2 asks b -> load b2, loading r2
        a1 ready  -> grant r1
        b2 ready  -> grant r2
        r2 ends   ->
        r4 asks c -> stop b2, loading r4
        """)


def test_a_held_model_that_is_busy_again_leaves_another_to_stop() -> None:
    # Either makes room for c. At first a is the colder, and held; busy again, it is no longer asked.
    sizes = {"a": 5, "b": 5, "c": 5}
    desk = Desk(spec_of("a b c", sizes=sizes, vram_budget=MiB(10)))
    desk.play("""
        r1 asks a hold=9 -> load a1, loading r1
        a1 ready  -> grant r1
        r2 asks b hold=0 -> load b2, loading r2
        b2 ready  -> grant r2
        r1 ends   ->
        r2 ends   ->
        r3 asks c -> r3 at 1
        r4 asks a -> grant r4, stop b2, loading r3
        """)
