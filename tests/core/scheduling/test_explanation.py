"""How things stand now, told from the state of a real scheduler."""

from collections.abc import Mapping
from dataclasses import replace

from qmsup.core.scheduling import explanation
from qmsup.core.scheduling.explanation import Standing
from qmsup.ids import ModelId, RequestId
from qmsup.spec import SchedulerSpec
from qmsup.units import Seconds
from tests.support.scheduling import Desk, spec_of


def desk_after(*said: str, evicts: Mapping[str, str] | None = None, slots: int = 2) -> Desk:
    desk = Desk(spec_of("a b c", slots=slots), evicts=evicts)
    for words in said:
        desk.say(words)
    return desk


def of(desk: Desk, model: str) -> Standing:
    return explanation.of_model(desk.scheduler.state, ModelId(model), Seconds(desk.now))


def waits(desk: Desk, request: str) -> tuple[str, ...]:
    return explanation.of_waiter(desk.scheduler.state, RequestId(request), Seconds(desk.now))


def test_a_ready_model_tells_its_places_and_who_has_them() -> None:
    desk = desk_after("r1 asks a", "a1 ready", "at 1.5")

    standing = of(desk, "a")

    assert standing.about == (
        "a has been ready for 1.500 s, at 127.0.0.1:5801: 1 of 2 places in use",
        "in use by r1",
    )
    assert (standing.evicts, standing.reasons, standing.obstacles) == ((), (), ())


def test_a_model_with_one_place_has_that_in_the_way() -> None:
    desk = Desk(spec_of("a", slots=1))
    desk.play("""
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        """)

    assert of(desk, "a").obstacles == ("the one place of a is in use",)


def test_a_full_model_has_its_own_places_in_the_way() -> None:
    desk = desk_after("r1 asks a", "a1 ready", "r2 asks a", "at 1", "r3 asks a", "at 2")

    assert of(desk, "a").obstacles == ("all 2 places of a are in use",)
    assert [place.request for place in of(desk, "a").places] == ["r3"]
    assert waits(desk, "r3") == (
        "has waited 1.000 s, at place 1 of 1 now: all places of the model are in use (at_limit)",
        "all 2 places of a are in use",
    )


def test_a_stopped_model_tells_what_would_have_to_stop_and_what_keeps_that() -> None:
    desk = desk_after("r1 asks a", "a1 ready", "load l b", "r2 asks b", "r3 asks c")

    standing = of(desk, "b")

    assert standing.about == ("b is stopped",)
    assert standing.evicts == ("a",)
    assert standing.reasons == ("a goes: it takes turns with b in group (default)",)
    assert standing.obstacles == ("a would have to stop and has 1 request in flight: r1",)
    assert waits(desk, "r3")[1] == "before it in the line: a load (b), r2 (b)"


def test_a_load_tells_who_waits_for_it_and_is_in_others_way() -> None:
    desk = desk_after("r1 asks a", "r2 asks a", "load l1 a", "at 1", "r3 asks b", "at 3")

    assert of(desk, "a").about == (
        "a has been starting for 3.000 s",
        "a is loading, begun 3.000 s ago; 3 requests for it",
    )
    assert of(desk, "a").joined == ("r1", "r2")
    assert of(desk, "a").obstacles == ()
    assert waits(desk, "r1") == (
        "has waited 3.000 s for its load: a is loading, begun 3.000 s ago; 3 requests for it",
    )
    assert of(desk, "b").obstacles == (
        "a load is in the way: a is loading, begun 3.000 s ago; 3 requests for it",
    )


def test_a_swap_that_still_evicts_names_whom() -> None:
    desk = desk_after("r1 asks a", "a1 ready", "r1 accepts", "r1 ends", "r2 asks b", "at 1")

    assert of(desk, "a").about == ("a has been stopping for 1.000 s",)
    assert of(desk, "b").about == (
        "b is stopped",
        "b is to be loaded, begun 1.000 s ago: a must stop first; 1 request for it",
    )


def test_a_load_that_meets_nothing_is_in_nobody_s_way() -> None:
    desk = desk_after("r1 asks a", evicts={"c": "b"})

    assert of(desk, "c").obstacles == ()
    assert of(desk, "c").reasons == ("the policy 'table' stops b",)


def test_a_load_that_is_given_up_says_so() -> None:
    desk = desk_after("r1 asks a", "r1 leaves", "r2 asks b", "at 1")

    assert of(desk, "a").about[-1] == "a load of a, begun 1.000 s ago, is being given up"


def test_a_failure_is_told_with_the_time_until_the_next_try() -> None:
    desk = desk_after("r1 asks a", "a1 fails")

    assert of(desk, "a").about == (
        "a is stopped",
        "its last start failed, and is not tried again for 1.0 s",
        "the last failure: exited with 1",
    )
    desk.say("at 5")
    assert of(desk, "a").about == ("a is stopped", "the last failure: exited with 1")


def test_a_model_that_is_drained_takes_nobody_new() -> None:
    desk = desk_after("r1 asks a", "a1 ready", "r1 accepts", "drain u a")

    assert of(desk, "a").about[-1] == "a takes no new requests, and stops when it is idle"


def test_a_start_asked_for_while_an_older_one_stops_is_told_as_the_newer() -> None:
    desk = desk_after("r1 asks a", "a1 ready", "r1 accepts", "r1 ends", "unload u a")
    desk.say("r2 asks a")
    assert of(desk, "a").about[0].startswith("a has been starting")

    desk.say("a2 fails")

    assert of(desk, "a").about[0] == "a is stopping"


def test_who_does_not_wait_stands_nowhere() -> None:
    assert waits(desk_after(), "r1") == ()


def test_a_hold_is_told_with_how_long_it_lasts() -> None:
    desk = Desk(spec_of("a b", scheduler=SchedulerSpec(hold=Seconds(10.0))))
    for words in ("r1 asks a", "a1 ready", "r1 ends tool_calls", "r2 asks b", "at 4"):
        desk.say(words)

    assert of(desk, "b").obstacles == ("a would have to stop and is held for 6.000 s more",)


def test_a_render_is_told() -> None:
    desk = Desk(spec_of("a v", renders="v"), evicts={})
    for words in ("r1 asks v", "v1 ready", "r2 asks a"):
        desk.say(words)

    assert of(desk, "a").obstacles == ("v makes an image or a video",)


def test_whoever_has_waited_long_enough_is_told_to_those_behind_it() -> None:
    desk = desk_after(
        "r1 asks a", "a1 ready", "late asks b patience=0", "r2 asks a", "r3 asks c",
        evicts={"b": "a", "c": "b"},
    )  # fmt: skip

    assert of(desk, "a").obstacles == ("b comes first: somebody has waited for it long enough",)
    assert of(desk, "c").obstacles == ("b comes first: somebody has waited for it long enough",)
    assert of(desk, "b").obstacles == ("a would have to stop and has 1 request in flight: r1",)


def test_a_load_that_waits_for_memory_says_so() -> None:
    desk = Desk(spec_of("a b", sizes={"b": 9}), evicts={"b": "a"})
    for words in ("load l a", "a1 ready", "reading free=5 a1=4", "r1 asks b", "a1 gone", "at 1"):
        desk.say(words)

    [told] = waits(desk, "r1")
    assert told.endswith(": GPU memory of what has stopped is on its way back; 1 request for it")


def test_pins_and_what_lacks_are_obstacles() -> None:
    desk = Desk(spec_of("a b", sizes={"b": 9}), evicts={"b": "a"})
    for words in ("load l a", "a1 ready", "reading free=4 a1=4"):
        desk.say(words)
    desk.scheduler.state.models[ModelId("a")].is_pinned = True

    assert of(desk, "b").obstacles == (
        "a would have to stop and is pinned",
        "b needs 9 MiB of GPU memory, and 8 MiB would be free for it",
    )
    assert "a is pinned: nothing stops it but an operator" in of(desk, "a").about


def test_a_drained_box_is_an_obstacle_for_every_model() -> None:
    desk = desk_after("close x")

    assert of(desk, "a").obstacles == ("this box is being drained: it takes no more work",)


def test_an_idle_model_tells_when_it_is_unloaded() -> None:
    spec = spec_of("a")
    [model] = spec.models.values()
    desk = Desk(replace(spec, models={model.id: replace(model, ttl=Seconds(60.0))}))
    for words in ("load l a", "a1 ready", "at 15"):
        desk.say(words)

    assert "nobody uses it: it is unloaded in 45.0 s" in of(desk, "a").about
