"""What people and programs are shown."""

from qmsup.core.scheduling import views
from qmsup.core.scheduling.views import ModelView
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
