"""When all models hold more than others leave them: after a while, what nobody needs is unloaded.

`line=` of a reading is what they may hold together. The grace is 30 s.
"""

from typing import Any

import pytest

from qmsup.core.scheduling import stories
from qmsup.core.scheduling.events import ConfigApplied, Woke
from qmsup.core.scheduling.stories import Turn
from qmsup.ids import EventNumber, ModelId
from qmsup.spec import GroupSpec, HoldOn, Pool, SchedulerSpec, Spec
from qmsup.units import MiB, Seconds
from tests.support.scheduling import Desk, group, spec_of

SIZES = {"a": 400, "b": 500, "c": 300}
TOO_MUCH = "reading free=100 line=900 a1=400 b2=500 c3=300"
ENOUGH = "reading free=100 line=1200 a1=400 b2=500 c3=300"


def guarded(*groups: GroupSpec, **others: Any) -> Spec:
    return spec_of("a b c", sizes=SIZES, groups=groups, vram_budget=MiB(1500), **others)


def full(spec: Spec | None = None) -> Desk:
    """a, b and c are ready and idle."""
    desk = Desk(guarded() if spec is None else spec)
    for number, model in enumerate("abc", 1):
        desk.say(f"load x{model} {model}")
        desk.say(f"{model}{number} ready")
    return desk


STORIES = {
    "the largest goes after the grace": f"""
        {TOO_MUCH} ->
        at 29.9    ->
        at 30      -> stop b2
        """,
    "as many as it takes": """
        reading free=100 line=500 a1=400 b2=500 c3=300 ->
        at 30      -> stop b2, stop a1
        """,
    "the grace is without a pause": f"""
        {TOO_MUCH} ->
        at 20      ->
        {ENOUGH}   ->
        {TOO_MUCH} ->
        at 49.9    ->
        at 50      -> stop b2
        """,
    "a reading that cannot be trusted is a pause": f"""
        {TOO_MUCH} ->
        at 20      ->
        blind      ->
        {TOO_MUCH} ->
        at 30      ->
        at 50      -> stop b2
        """,
    "who is in use stays": f"""
        {TOO_MUCH} ->
        r1 asks b  -> grant r1
        r1 accepts ->
        at 30      -> stop a1
        """,
    "with all in use, whoever comes free first": f"""
        r1 asks a  -> grant r1
        r2 asks b  -> grant r2
        r3 asks c  -> grant r3
        r1 accepts ->
        r2 accepts ->
        r3 accepts ->
        {TOO_MUCH} ->
        at 30      ->
        r3 ends    ->
        at 31      -> stop c3
        """,
    "a job is use": f"""
        lease y j b 999 -> answer y done
        {TOO_MUCH} ->
        at 30      -> stop a1
        """,
    "who is pinned stays": f"""
        pin y b    -> answer y done
        {TOO_MUCH} ->
        at 30      -> stop a1
        """,
    "then it rests, to see what comes of it": f"""
        {TOO_MUCH} ->
        at 30      -> stop b2
        b2 gone    ->
        reading free=100 line=100 a1=400 c3=300 ->
        at 60      ->
        at 89.9    ->
        at 90      -> stop a1, stop c3
        """,
    "what has gone meanwhile counts": f"""
        {TOO_MUCH} ->
        at 10      ->
        unload y b -> stop b2
        b2 gone    -> answer y done
        at 30      ->
        at 31      ->
        """,
    "what is on its way out counts too": f"""
        {TOO_MUCH} ->
        at 10      ->
        unload y b -> stop b2
        at 30      ->
        at 31      ->
        reading free=600 line=900 a1=400 c3=300 ->
        b2 gone    -> answer y done
        at 32      ->
        """,
    "nothing is stopped for who holds nothing": """
        reading free=100 line=100 a1=0 b2=0 c3=300 ->
        at 30      -> stop c3
        """,
    "who waits is served by the memory": f"""
        {TOO_MUCH} ->
        unload y c -> stop c3
        c3 gone    -> answer y done
        at 3       ->
        reading free=200 line=700 a1=400 b2=500 ->
        r1 asks c  -> refuse r1 insufficient_vram
        at 30      -> stop b2
        """,
    "what ends, ends once": f"""
        {TOO_MUCH} ->
        shutdown   -> stop a1, stop b2, stop c3
        at 30      ->
        a1 gone    ->
        b2 gone    ->
        c3 gone    -> end
        """,
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_story(story: str) -> None:
    full().play(story)


def test_a_persistent_model_stays() -> None:
    kept = guarded(group("kept", "b", persistent=True), group("rest", "a c"))
    full(kept).play(f"""
        {TOO_MUCH} ->
        at 30      -> stop a1
        """)


def test_who_is_kept_for_somebody_goes_last() -> None:
    holding = SchedulerSpec(hold=Seconds(100.0), hold_on=HoldOn.ALWAYS)
    full(guarded(scheduler=holding)).play(f"""
        r1 asks b  -> grant r1
        r1 ends    ->
        {TOO_MUCH} ->
        at 30      -> stop a1
        """)


@pytest.mark.parametrize(("evict", "wanted"), [(True, "stop b2"), (False, "")])
def test_an_operator_may_forbid_it(evict: bool, wanted: str) -> None:
    desk = full(guarded(oom_guard_evict=evict, oom_guard_grace=Seconds(5.0)))
    desk.say(TOO_MUCH)

    assert desk.wake == (5.0 if evict else None)
    desk.now = 5.0
    assert desk.say("woke") == wanted


def test_another_grace_counts_at_once() -> None:
    desk = full()
    desk.say(TOO_MUCH)
    desk.tell(ConfigApplied(spec=guarded(oom_guard_grace=Seconds(5.0))))

    desk.now = 5.0
    assert desk.say("woke") == "stop b2"


def test_it_is_told_why() -> None:
    desk = full()
    desk.say(TOO_MUCH)
    desk.now = 30.0
    desk.say("woke")

    (shed,) = [record for record in desk.records() if record.decision == "model.shed"]
    turn = Turn(EventNumber(1), Seconds(30.0), Woke(), desk.effects)
    (told,) = stories.of_model(ModelId("b"), [turn])
    assert told.text == (
        "b is unloaded, since others want the GPU's memory and nobody uses it:"
        " all models hold 300 MiB too much"
    )
    assert (shed.model, shed.because) == ("b", "all models hold 300 MiB too much")


def test_a_reading_of_the_ram_holds_its_pool_to_what_is_there() -> None:
    pool = group("cpu", "a b", pool=Pool.RAM)
    desk = Desk(
        spec_of("a b", rams={"a": 400, "b": 500}, ram_budget=MiB(1000), groups=(pool,)),
    )
    desk.play("""
        load x a -> load a1
        a1 ready -> answer x done
        reading free=100 ram=800 ->
        r1 asks b -> stop a1, loading r1
        """)
