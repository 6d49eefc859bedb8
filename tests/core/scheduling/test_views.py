"""What people and programs are shown."""

from dataclasses import replace

from qmsup.core.scheduling import views
from qmsup.core.scheduling.events import ConfigApplied
from qmsup.core.scheduling.explanation import of_model
from qmsup.core.scheduling.views import ModelView
from qmsup.ids import ModelId
from qmsup.spec import SchedulerSpec
from qmsup.units import Seconds
from tests.support.scheduling import WORKER, Desk, spec_of


def shown(desk: Desk, now: float = 0.0) -> dict[str, ModelView]:
    state = desk.scheduler.state
    return {view.id: view for view in views.models(state, state.spec, Seconds(now))}


def test_a_model_from_stopped_to_stopped() -> None:
    desk = Desk(spec_of("a b", sizes={"a": 5}))
    said = {}
    for word in ("", "r1 asks a", "a1 starting", "a1 ready", "r1 ends", "unload x a", "a1 gone"):
        if word:
            desk.now += 1
            desk.say(word)
        view = shown(desk, 10.0)["a"]
        said[word] = (view.state, view.pid, view.port, view.in_flight, view.queued, view.since)

    assert said == {
        "": ("stopped", None, None, 0, 0, 10.0),
        "r1 asks a": ("starting", None, None, 0, 1, 9.0),
        "a1 starting": ("starting", 1001, 5801, 0, 1, 9.0),
        "a1 ready": ("ready", 1001, 5801, 1, 0, 7.0),
        "r1 ends": ("ready", 1001, 5801, 0, 0, 7.0),
        "unload x a": ("stopping", 1001, 5801, 0, 0, 5.0),
        "a1 gone": ("stopped", None, None, 0, 0, 4.0),
    }


def test_a_child_ages_from_its_spawning_on_whatever_it_does() -> None:
    desk = Desk(spec_of("a"))
    ages = {}
    for word in ("load x a", "a1 starting", "a1 ready", "unload y a", "a1 gone"):
        desk.now += 1
        desk.say(word)
        ages[word] = shown(desk, 10.0)["a"].age

    assert ages == {
        "load x a": None,
        "a1 starting": 8.0,
        "a1 ready": 8.0,
        "unload y a": 8.0,
        "a1 gone": None,
    }


def test_a_ready_model_that_takes_nothing_new_says_why() -> None:
    spec = spec_of("a b c d")
    desk = Desk(spec, evicts={"d": "b"})
    desk.play("""
        ra asks a  -> load a1, loading ra
        a1 ready   -> grant ra
        ra accepts ->
        rb asks b  -> load b2, loading rb
        b2 ready   -> grant rb
        rb accepts ->
        rc asks c  -> load c3, loading rc
        c3 ready   -> grant rc
        rc accepts ->
        """)
    assert {view.closing for view in shown(desk).values()} == {""}

    desk.say("drain x a")
    desk.say("rd asks d patience=0")
    others = {id_: model for id_, model in spec.models.items() if id_ != "c"}
    desk.tell(ConfigApplied(spec=replace(spec, models=others)))

    closing = {id_: view.closing for id_, view in shown(desk).items()}
    assert closing == {"a": "unload", "b": "line", "c": "removed", "d": ""}


def test_a_render_model_that_takes_nothing_new_until_somebody_is_loaded_says_so() -> None:
    desk = Desk(spec_of("a b v", renders="v"), evicts={})
    desk.play("""
        r1 asks v            -> load v1, loading r1
        v1 ready             -> grant r1
        r2 asks b            -> r2 at 1
        """)
    assert shown(desk)["v"].closing == ""

    desk.play("""
        r3 asks b patience=0 -> r3 at 1
        r4 asks v            -> r4 at 3
        """)
    assert shown(desk)["v"].closing == "line"
    told = of_model(desk.scheduler.state, ModelId("v"), Seconds(desk.now)).obstacles
    assert told == ("b comes first: somebody has waited for it long enough",)


def test_a_ready_model_says_where_it_is() -> None:
    desk = Desk(spec_of("a b", sizes={"a": 5}))
    desk.play("""
        load x a  -> load a1
        a1 ready  -> answer x done
        """)

    view = shown(desk)["a"]

    assert (view.upstream, view.incarnation, view.est_vram) == ("127.0.0.1:5801", 1, 5)


def test_a_failed_model_says_why() -> None:
    desk = Desk(spec_of("a"))
    desk.play("""
        load x a  -> load a1
        a1 fails  -> answer x model_load_failed
        """)

    assert (shown(desk)["a"].state, shown(desk)["a"].last_error) == ("failed", "exited with 1")


def test_an_older_incarnation_shows_as_stopping() -> None:
    desk = Desk(spec_of("a"))
    desk.play("""
        load x a    -> load a1
        unload y a  -> answer x model_unloaded, stop a1
        r1 asks a   -> r1 at 1
        r1 leaves   ->
        """)

    assert shown(desk)["a"].state == "stopping"


def test_a_younger_incarnation_that_failed_leaves_the_older_one_stopping() -> None:
    desk = Desk(spec_of("a"))
    desk.play("""
        load x a    -> load a1
        a1 ready    -> answer x done
        unload y a  -> stop a1
        load z a    -> load a2
        a2 fails    -> answer z model_load_failed
        """)

    assert shown(desk)["a"].state == "stopping"
    assert desk.say("a1 gone") == "answer y done"
    assert shown(desk)["a"].state == "failed"


def test_the_line_says_who_waits_where_and_why() -> None:
    desk = Desk(spec_of("a b c", slots=1), evicts={"b": "a", "c": "a"})
    desk.play("""
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        r2 asks b -> r2 at 1
        load x c  ->
        r3 asks a -> r3 at 3
        """)

    line = views.line(desk.scheduler.state, Seconds(2.0))

    assert [(v.request, v.model, v.place, v.waited, v.because) for v in line] == [
        ("r2", "b", 1, 2.0, "busy"),
        (None, "c", 2, 2.0, "busy"),
        ("r3", "a", 3, 2.0, "at_limit"),
    ]
    assert shown(desk)["b"].queued == 1


def test_a_worker_s_tally_counts_an_offer_as_waiting() -> None:
    desk = Desk(spec_of("a b"), evicts={"b": "a"})
    desk.play("""
        r1 asks a  -> load a1, loading r1
        r2 asks a  -> loading r2
        a1 ready   -> grant r1, grant r2
        r1 accepts ->
        r3 asks b  -> r3 at 1
        """)

    state = desk.scheduler.state
    assert views.tally(state, WORKER) == views.Tally(waiting=2, held=1)
    desk.say("w1 lost")
    assert views.tally(state, WORKER) == views.Tally(waiting=0, held=0)


def test_leases_say_who_uses_what_and_for_how_long() -> None:
    desk = Desk(spec_of("a b"), evicts={})
    desk.play("""
        lease x j1 a 10 -> load a1
        a1 ready        -> answer x done
        r1 asks a       -> grant r1
        """)

    told = [
        (v.id, v.model, v.is_job, v.is_held, v.owner, v.purpose, v.ttl_left)
        for v in views.leases(desk.scheduler.state, Seconds(4.0))
    ]

    assert told == [
        ("j1", "a", True, True, "tester", "a render", 6.0),
        ("r1", "a", False, False, "w1", "", None),
    ]


def test_the_line_says_behind_whom_and_with_how_much_patience() -> None:
    scheduler = SchedulerSpec(hold=Seconds(10.0), patience=Seconds(5.0))
    desk = Desk(
        spec_of("a b c d e v", renders="v", slots=1, scheduler=scheduler),
        evicts={"b": "a", "c": "a", "d": "c", "e": "b"},
    )
    desk.play("""
        r1 asks a            -> load a1, loading r1
        a1 ready             -> grant r1
        r1 ends tool_calls   ->
        r2 asks b            -> r2 at 1
        r3 asks d            -> load d2, loading r3
        r4 asks c            -> r4 at 2
        """)
    assert seen(desk, 2.0) == {"r2": ("held", "a", 3.0), "r4": ("collides", "d", 3.0)}

    desk.play("""
        r5 asks a            -> grant r5
        r6 asks a            -> r6 at 3
        d2 ready             -> grant r3
        r7 asks b patience=0 -> r7 at 1
        r8 asks a            -> r8 at 5
        r9 asks e            -> r9 at 6
        """)
    assert seen(desk, 9.0) == {
        "r7": ("busy", "a", 0.0),
        "r2": ("reserved", "b", 0.0),
        "r4": ("reserved", "b", 0.0),
        "r6": ("yields", "b", 0.0),
        "r8": ("yields", "b", 0.0),
        "r9": ("reserved", "b", 0.0),
    }


def test_the_line_tells_of_renders_swaps_and_full_models() -> None:
    desk = Desk(spec_of("a b c v", renders="v", slots=1), evicts={"b": "a"})
    desk.play("""
        r1 asks a -> load a1, loading r1
        r2 asks b -> r2 at 1
        r3 asks v -> load v2, loading r3
        a1 ready  -> grant r1
        r4 asks a -> r4 at 2
        """)
    assert seen(desk, 1.0) == {"r2": ("busy", "a", 299.0), "r4": ("at_limit", "a", 299.0)}

    desk.play("""
        v2 ready  -> grant r3
        r5 asks c -> r5 at 3
        """)
    assert seen(desk, 1.0)["r5"] == ("rendering", "v", 299.0)


def test_the_line_names_the_load_in_the_way() -> None:
    desk = Desk(spec_of("a b"), evicts={"b": "a"})
    desk.play("""
        r1 asks a -> load a1, loading r1
        r2 asks b -> r2 at 1
        """)
    assert seen(desk, 1.0) == {"r2": ("collides", "a", 299.0)}


def test_who_waits_for_memory_waits_behind_what_stops() -> None:
    desk = Desk(spec_of("a b c", sizes={"a": 400, "b": 300}), evicts={})
    desk.play("""
        load x a   -> load a1
        a1 ready   -> answer x done
        load y c   -> load c2
        c2 ready   -> answer y done
        reading free=100 a1=400 c2=0 ->
        unload z a -> stop a1
        r1 asks b  -> r1 at 1
        """)

    assert seen(desk, 0.0) == {"r1": ("collides", "a", 300.0)}


def seen(desk: Desk, now: float) -> dict[str, tuple[str, str, float]]:
    """Of each request in the line: why, behind whom, and its patience."""
    return {
        view.request or "": (view.because, " ".join(view.behind), view.patience_left)
        for view in views.line(desk.scheduler.state, Seconds(now))
    }
