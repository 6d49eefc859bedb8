"""A model that nobody uses is unloaded after its time to live; what keeps it, keeps it."""

from dataclasses import replace

import pytest

from qmsup.core.scheduling import views
from qmsup.core.scheduling.events import ConfigApplied
from qmsup.ids import ModelId
from qmsup.spec import Spec
from qmsup.units import Seconds
from tests.support.scheduling import Desk, spec_of

A, B = ModelId("a"), ModelId("b")


def with_ttl(ttl: float, models: str = "a b", slots: int = 4) -> Spec:
    """Model a lives for so long without work."""
    spec = spec_of(models, slots=slots)
    return replace(spec, models={**spec.models, A: replace(spec.models[A], ttl=Seconds(ttl))})


def ttl_left(desk: Desk) -> float | None:
    state = desk.scheduler.state
    [view] = [v for v in views.models(state, state.spec, Seconds(desk.now)) if v.id == A]
    return view.ttl_left


STORIES = {
    "it counts from the last lease's end": """
        r1 asks a -> load a1, loading r1
        at 1      ->
        a1 ready  -> grant r1
        r2 asks a -> grant r2
        r1 accepts ->
        r2 accepts ->
        at 4      ->
        r1 ends   ->
        at 20     ->
        r2 ends   ->
        at 29     ->
        at 30     -> stop a1
        """,
    "it counts from when it was ready, if nobody came": """
        load x a  -> load a1
        at 3      ->
        a1 ready  -> answer x done
        at 12     ->
        at 13     -> stop a1
        """,
    "a request that comes in time keeps it": """
        load x a  -> load a1
        a1 ready  -> answer x done
        at 9      ->
        r1 asks a -> grant r1
        r1 accepts ->
        at 100    ->
        r1 ends   ->
        at 110    -> stop a1
        """,
    "one that is asked for while it stops starts once": """
        load x a  -> load a1
        a1 ready  -> answer x done
        at 10     -> stop a1
        r1 asks a -> load a2, loading r1
        r2 asks a -> loading r2
        a1 gone   ->
        a2 ready  -> grant r1, grant r2
        """,
    "a job keeps it": """
        lease x j1 a 60 -> load a1
        a1 ready        -> answer x done
        at 50           ->
        release y j1    -> answer y done
        at 60           -> stop a1
        """,
    "a pin keeps it, and its end does not unload it at once": """
        load x a  -> load a1
        pin y a   -> answer y done
        a1 ready  -> answer x done
        at 50     ->
        unpin z a -> answer z done
        woke      -> stop a1
        """,
    "a hold keeps it": """
        r1 asks a hold=30 -> load a1, loading r1
        a1 ready  -> grant r1
        r1 ends   ->
        at 29     ->
        at 30     -> stop a1
        """,
    "its end may come otherwise": """
        load x a  -> load a1
        a1 ready  -> answer x done
        at 1      ->
        unload y a -> stop a1
        a1 gone   -> answer y done
        at 10     ->
        load z a  -> load a2
        a2 fails  -> answer z model_load_failed
        """,
    "a crash ends the count": """
        load x a  -> load a1
        a1 ready  -> answer x done
        a1 fails  ->
        at 10     ->
        """,
    "a model without one stays": """
        load x b  -> load b1
        b1 ready  -> answer x done
        at 100000 ->
        """,
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_story(story: str) -> None:
    Desk(with_ttl(10)).play(story)


def test_there_is_one_deadline_and_it_is_the_wake() -> None:
    desk = Desk(with_ttl(10))
    wakes = []
    for words in ("load x a", "a1 ready", "r1 asks a", "r1 accepts", "r1 ends", "at 10", "woke"):
        desk.say(words)
        wakes.append(desk.wake)

    assert wakes == [None, 10.0, 5.0, None, 10.0, 10.0, None]


def test_what_is_left_of_it_is_shown() -> None:
    desk = Desk(with_ttl(10))
    shown = [ttl_left(desk)]
    for words in ("load x a", "a1 ready", "at 4", "r1 asks a"):
        desk.say(words)
        shown.append(ttl_left(desk))

    assert shown == [None, None, 10.0, 6.0, None]


def test_another_configuration_counts_at_once() -> None:
    desk = Desk(with_ttl(10))
    desk.play("""
        load x a  -> load a1
        a1 ready  -> answer x done
        at 4      ->
        """)

    wakes = []
    for ttl in (5, 5, 0, 3):
        desk.tell(ConfigApplied(spec=with_ttl(ttl)))
        wakes.append(desk.wake)

    assert wakes == [5.0, 5.0, None, 3.0]
    assert desk.say("woke") == "stop a1"


def test_it_is_said_why() -> None:
    desk = Desk(with_ttl(10))
    for words in ("load x a", "a1 ready", "at 10", "woke"):
        desk.say(words)

    assert [(r.decision, r.model, r.because) for r in desk.records()] == [
        ("model.unused", "a", "10 s")
    ]
