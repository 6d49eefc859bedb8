"""A render that begins while a load still makes room: the load waits for its end, and other renders for the load."""

from dataclasses import replace

import pytest

from qmsup.core.scheduling import explanation, views
from qmsup.core.scheduling.events import ConfigApplied
from qmsup.core.scheduling.line import Because
from qmsup.core.scheduling.records import SwapPhase
from qmsup.ids import ModelId, RequestId
from qmsup.units import Seconds
from tests.support.scheduling import Desk, spec_of

EVICTS = {"b": "a", "a": "b", "w": "u"}

MEANWHILE = """
    load x v   -> load v1
    v1 ready   -> answer x done
    load y a   -> load a2
    a2 ready   -> answer y done
    r1 asks b  -> stop a2, loading r1
    r2 asks v  -> grant r2
    a2 gone    ->
"""
"""v renders since b had a stopped; a is gone, and b has not been spawned."""

STORIES = {
    "nothing is spawned beside it, and what it kept from loading is loaded at its end": """
        r2 ends    -> load b3
        b3 ready   -> grant r1
    """,
    "a second render waits until that has been spawned": """
        r3 asks v  -> r3 at 1
        r2 ends    -> load b3, grant r3
        b3 ready   -> grant r1
    """,
    "nor is another render model loaded before it": """
        r3 asks w  -> r3 at 1
        r2 ends    -> load b3, load w4, loading r3
    """,
    "a render model may be made ready meanwhile": """
        load z v   -> answer z done
        r2 ends    -> load b3
    """,
    "a job of the request in flight is under way, so it waits for nobody": """
        lease j l v -> answer j done
        r2 ends     ->
        release k l -> answer k done, load b3
    """,
    "the end of a render's child ends the render": """
        v1 fails   -> load b3
    """,
    "a load that nobody wants any more is given up for the next render": """
        r1 leaves  ->
        r3 asks v  -> r3 at 1, grant r3
        r2 ends    ->
        r4 asks b  -> r4 at 1
        r3 ends    -> load b3, loading r4
    """,
    "a load that everybody leaves while a render waits for it is given up": """
        r3 asks v  -> r3 at 1
        r1 leaves  -> grant r3
    """,
    "an unload of what is to be loaded ends it": """
        unload k b -> refuse r1 model_unloaded, answer k done
        r2 ends    ->
    """,
    "a shutdown ends it": """
        shutdown   -> refuse r1 shutting_down
        r2 ends    -> stop v1
    """,
    "two of them load together": """
        r3 asks c  -> r3 at 1
        r2 ends    -> load b3, load c4, loading r3
    """,
}


def a_desk() -> Desk:
    desk = Desk(spec_of("a b c u v w", renders="v w"), evicts=EVICTS)
    desk.play(MEANWHILE)
    assert desk.scheduler.state.swaps[ModelId("b")].phase is SwapPhase.RENDERING
    return desk


@pytest.mark.parametrize("name", STORIES)
def test_it_is_told_of_a_render_begun_meanwhile(name: str) -> None:
    a_desk().play(STORIES[name])


def test_those_who_waited_for_a_render_model_render_before_what_it_meets_is_spawned() -> None:
    desk = Desk(spec_of("a b v", renders="v"), evicts={"b": "a"})
    desk.play("""
        load y a   -> load a1
        a1 ready   -> answer y done
        r1 asks v  -> load v2, loading r1
        r2 asks b  -> stop a1, loading r2
        v2 ready   -> grant r1
        a1 gone    ->
        r1 ends    -> load b3
        b3 ready   -> grant r2
    """)


def test_memory_that_is_back_does_not_open_the_door() -> None:
    sizes = {"a": 400, "b": 400, "v": 100}
    desk = Desk(spec_of("a b v", renders="v", sizes=sizes), evicts={"b": "a"})
    desk.play("""
        load x v   -> load v1
        v1 ready   -> answer x done
        load y a   -> load a2
        a2 ready   -> answer y done
        reading free=100 a2=400 v1=100 ->
        r1 asks b  -> stop a2, loading r1
        a2 gone    ->
        r2 asks v  -> grant r2
        back a2 400 500 ->
        r2 ends    -> load b3
    """)


def test_what_has_become_a_render_model_waits_for_no_render() -> None:
    desk = a_desk()
    spec = desk.scheduler.state.spec
    renders = replace(spec.models[ModelId("b")], renders=True)
    desk.tell(ConfigApplied(spec=replace(spec, models={**spec.models, ModelId("b"): renders})))
    assert desk.told() == "load b3"


def test_whoever_asks_is_told_what_waits_for_the_render_and_what_for_that() -> None:
    desk = a_desk()
    desk.say("r3 asks v")
    state, now = desk.scheduler.state, Seconds(5.0)
    begun = "b is to be loaded, begun 5.000 s ago: an image or a video that was begun since has to be done first"
    assert explanation.of_waiter(state, RequestId("r1"), now) == (
        f"has waited 5.000 s for its load: {begun}; 1 request for it",
    )
    [_, obstacle] = explanation.of_waiter(state, RequestId("r3"), now)
    assert obstacle == f"a load is in the way: {begun}; 1 request for it"
    [place] = views.line(state, now)
    assert (place.because, place.behind) == (Because.YIELDS, (ModelId("b"),))
