"""Who keeps an idle model for whom, and how long somebody else puts up with it."""

import pytest

from qmsup.core.scheduling import views
from qmsup.core.scheduling.line import Because
from qmsup.spec import HoldOn, SchedulerSpec
from qmsup.units import MiB, Seconds
from tests.support.scheduling import Desk, spec_of

HOLDS = SchedulerSpec()
A_FOR_B = {"b": "a"}

STORIES = {
    "an idle model is held while tools run": """
        r1 asks a            -> load a1, loading r1
        a1 ready             -> grant r1
        r1 ends tool_calls   ->
        at 2                 ->
        r2 asks b            -> r2 at 1
        at 9.9               ->
        at 10                -> stop a1, loading r2
        """,
    "what did not call a tool holds nothing": """
        r1 asks a            -> load a1, loading r1
        a1 ready             -> grant r1
        r2 asks b            -> r2 at 1
        r1 ends finished     -> stop a1, loading r2
        """,
    "an end that could not be read may have called a tool": """
        r1 asks a            -> load a1, loading r1
        a1 ready             -> grant r1
        r2 asks b            -> r2 at 1
        r1 ends unknown      ->
        at 10                -> stop a1, loading r2
        """,
    "patience 0 honours no hold": """
        r1 asks a            -> load a1, loading r1
        a1 ready             -> grant r1
        r1 ends tool_calls   ->
        at 2                 ->
        r2 asks b patience=0 -> stop a1, loading r2
        """,
    "patience ends before the hold": """
        r1 asks a              -> load a1, loading r1
        a1 ready               -> grant r1
        r1 ends tool_calls     ->
        at 2                   ->
        r2 asks b patience=0.5 -> r2 at 1
        at 2.4                 ->
        at 2.5                 -> stop a1, loading r2
        """,
    "a client that wants no hold leaves none": """
        r1 asks a hold=0     -> load a1, loading r1
        a1 ready             -> grant r1
        r1 ends tool_calls   ->
        r2 asks b            -> stop a1, loading r2
        """,
    "a client's hold lasts as long as it said": """
        r1 asks a hold=0.25  -> load a1, loading r1
        a1 ready             -> grant r1
        r1 ends finished     ->
        r2 asks b            -> r2 at 1
        at 0.2               ->
        at 0.25              -> stop a1, loading r2
        """,
    "the last round of a loop leaves nothing behind": """
        r1 asks a of=x       -> load a1, loading r1
        a1 ready             -> grant r1
        r1 ends tool_calls   ->
        at 1                 ->
        r2 asks a of=x       -> grant r2
        r3 asks b            -> r3 at 1
        at 2                 ->
        r2 ends finished     -> stop a1, loading r3
        """,
    "another loop's hold stays": """
        r1 asks a of=x       -> load a1, loading r1
        r2 asks a of=y       -> loading r2
        a1 ready             -> grant r1, grant r2
        r1 ends tool_calls   ->
        r3 asks b            -> r3 at 1
        at 2                 ->
        r2 ends finished     ->
        at 10                -> stop a1, loading r3
        """,
    "clients without a key are told apart by their address": """
        r1 asks a client=1   -> load a1, loading r1
        a1 ready             -> grant r1
        r1 ends tool_calls   ->
        r2 asks a client=2   -> grant r2
        r3 asks b            -> r3 at 1
        r2 ends finished     ->
        at 10                -> stop a1, loading r3
        """,
    "without key and address a worker's clients are one conversation": """
        r1 asks a            -> load a1, loading r1
        a1 ready             -> grant r1
        r1 ends tool_calls   ->
        r2 asks a            -> grant r2
        r3 asks b            -> r3 at 1
        r2 ends finished     -> stop a1, loading r3
        """,
    "an unloaded model is held no longer": """
        r1 asks a            -> load a1, loading r1
        a1 ready             -> grant r1
        r1 ends tool_calls   ->
        r2 asks b            -> r2 at 1
        unload x a           -> stop a1, loading r2
        a1 gone              -> load b2, answer x done
        """,
    "an evicted model is held no longer when it comes back": """
        r1 asks a            -> load a1, loading r1
        a1 ready             -> grant r1
        r1 ends tool_calls   ->
        r2 asks b patience=0 -> stop a1, loading r2
        a1 gone              -> load b2
        b2 ready             -> grant r2
        load x a             -> load a3
        a3 ready             -> answer x done
        unload y b           -> cut r2 model_unloaded, stop b2
        b2 gone              -> answer y done
        r3 asks b            -> stop a3, loading r3
        """,
    "a crashed model is held no longer": """
        r1 asks a            -> load a1, loading r1
        a1 ready             -> grant r1
        r1 ends tool_calls   ->
        r2 asks b            -> r2 at 1
        a1 fails             -> load b2, loading r2
        """,
    "a lease that outlives its child holds nothing": """
        r1 asks a            -> load a1, loading r1
        a1 ready             -> grant r1
        r2 asks b            -> r2 at 1
        a1 fails             ->
        r1 ends tool_calls   -> load b2, loading r2
        """,
    "a waiter that honours the hold joins one that does not": """
        r1 asks a            -> load a1, loading r1
        a1 ready             -> grant r1
        r1 ends tool_calls   ->
        r2 asks b            -> r2 at 1
        r3 asks b patience=0 -> stop a1, loading r3, loading r2
        """,
}


@pytest.mark.parametrize("name", STORIES)
def test_it_is_told(name: str) -> None:
    Desk(spec_of("a b", scheduler=HOLDS), evicts=A_FOR_B).play(STORIES[name])


def held_for_another(spec: SchedulerSpec = HOLDS) -> Desk:
    """At 0 model a is held, and nobody waits."""
    desk = Desk(spec_of("a b", scheduler=spec), evicts=A_FOR_B)
    desk.play("""
        r1 asks a of=x     -> load a1, loading r1
        a1 ready           -> grant r1
        r1 ends tool_calls ->
        """)
    return desk


def test_a_hold_wakes_nobody_while_nobody_waits() -> None:
    desk = held_for_another()
    wakes = [desk.wake]
    for words in ("r2 asks b", "r2 leaves"):
        desk.say(words)
        wakes.append(desk.wake)

    assert wakes == [None, 10.0, None]


def test_the_end_of_a_patience_wakes_whatever_blocks_the_waiter() -> None:
    desk = Desk(spec_of("a b"), evicts=A_FOR_B)
    desk.play("""
        r1 asks a            -> load a1, loading r1
        a1 ready             -> grant r1
        r1 accepts           ->
        r2 asks b patience=7 -> r2 at 1
        """)

    assert desk.wake == 7.0


def test_a_waiter_s_deadline_may_come_before_its_patience() -> None:
    desk = held_for_another()
    desk.say("r2 asks b timeout=3")

    assert desk.wake == 3.0


def test_a_hold_that_ended_is_over_although_nobody_has_woken_yet() -> None:
    desk = held_for_another()
    desk.say("r2 asks b")

    desk.say("at 10")

    assert desk.say("w2 joins") == "stop a1, loading r2"


def test_a_renewed_hold_wakes_at_its_new_end() -> None:
    desk = held_for_another()
    desk.play("""
        r2 asks b          -> r2 at 1
        at 8               ->
        r3 asks a of=x     -> grant r3
        r3 ends tool_calls ->
        at 10              ->
        """)

    assert desk.wake == 18.0


def test_what_one_honours_is_configured() -> None:
    short = SchedulerSpec(hold=Seconds(2.0), hold_on=HoldOn.ALWAYS, patience=Seconds(1.0))
    desk = held_for_another(short)
    desk.play("""
        r2 asks b -> r2 at 1
        at 1      -> stop a1, loading r2
        """)


def test_a_load_has_the_patience_of_the_configuration() -> None:
    desk = held_for_another(SchedulerSpec(patience=Seconds(4.0)))
    desk.play("""
        load x b ->
        at 4     -> stop a1
        """)


def test_what_has_waited_before_a_new_scheduler_has_used_up_its_patience() -> None:
    desk = held_for_another(SchedulerSpec(patience=Seconds(4.0)))
    desk.play("r2 asks b waited=4 -> stop a1, loading r2")


def test_it_comes_before_those_that_have_waited_less() -> None:
    desk = Desk(spec_of("a b", slots=1), evicts=A_FOR_B)
    desk.play("""
        r1 asks a            -> load a1, loading r1
        a1 ready             -> grant r1
        r1 accepts           ->
        r2 asks a patience=0 -> r2 at 1
        r3 asks b waited=400 -> r3 at 1
        r1 ends              -> stop a1, loading r3
        """)


def test_who_is_past_its_patience_goes_first_by_arrival() -> None:
    spec = spec_of("a b c d", scheduler=SchedulerSpec(priority={"d": 5}))  # type: ignore[dict-item]
    desk = Desk(spec, evicts={"b": "a", "c": "a", "d": "a"})
    desk.play("""
        r1 asks a                      -> load a1, loading r1
        a1 ready                       -> grant r1
        r2 asks b streaming patience=3 -> r2 at 1
        r3 asks c streaming patience=2 -> r3 at 2
        r4 asks d streaming            -> r4 at 1
        at 0.25                        -> r2 at 2 r3 at 3
        at 2                           -> r3 at 1 r4 at 2 r2 at 3
        at 3                           -> r2 at 1 r3 at 2 r4 at 3
        """)


def test_a_joiner_loses_its_patience_too() -> None:
    desk = Desk(spec_of("a b", slots=1), evicts=A_FOR_B)
    desk.play("""
        r1 asks a            -> load a1, loading r1
        r2 asks a patience=2 -> loading r2
        r3 asks a            -> loading r3
        at 3                 ->
        r3 leaves            ->
        a1 ready             -> grant r1
        """)

    state = desk.scheduler.state
    assert [case.is_past for case in state.line.groups] == [True]


def test_an_agent_renews_its_hold_and_a_patient_waiter_gets_in_between_two_rounds() -> None:
    desk = Desk(spec_of("a b", scheduler=HOLDS), evicts=A_FOR_B)
    desk.play("""
        r0 asks a of=x     -> load a1, loading r0
        a1 ready           -> grant r0
        r0 ends tool_calls ->
        late asks b        -> late at 1
        """)
    told: list[str] = []
    while "stop a1" not in "".join(told):
        desk.now += 9.0
        name = f"r{desk.now:g}"
        told = [desk.say("woke"), desk.say(f"{name} asks a of=x"), desk.say(f"{name} accepts")]
        desk.now += 1.0
        told += [desk.say("woke"), desk.say(f"{name} ends tool_calls")]

    assert 300 <= desk.now <= 302


@pytest.mark.parametrize("rounds", [20])
def test_two_agents_with_short_tool_calls_load_two_models_once_each(rounds: int) -> None:
    assert loads_of_two_agents(rounds, HOLDS) == 2
    assert loads_of_two_agents(rounds, SchedulerSpec(hold=Seconds(0.0))) > rounds


def loads_of_two_agents(rounds: int, scheduler: SchedulerSpec) -> int:
    """Each asks its own model, 0.4 s of tools between the rounds; a load takes 1 s, an answer 0.2 s."""
    desk = Desk(spec_of("a b", scheduler=scheduler))
    agenda: list[tuple[float, int, str]] = []
    done = {"a": 0, "b": 0}
    loads = 0

    def later(by: float, words: str) -> None:
        agenda.append((desk.now + by, len(agenda) + loads, words))

    later(0.0, "ra0 asks a of=loop-a")
    later(0.1, "rb0 asks b of=loop-b")
    while agenda or desk.wake is not None:
        agenda.sort()
        if desk.effects and desk.wake is not None and (not agenda or desk.wake <= agenda[0][0]):
            desk.now, words = desk.wake, "woke"
        else:
            desk.now, _, words = agenda.pop(0)
        for told in desk.say(words).split(", "):
            verb, _, who = told.partition(" ")
            match verb:
                case "load":
                    loads += 1
                    later(1.0, f"{who} ready")
                case "stop":
                    later(0.1, f"{who} gone")
                case "grant":
                    model = who[1]
                    done[model] += 1
                    is_last = done[model] == rounds
                    later(0.0, f"{who} accepts")
                    later(0.2, f"{who} ends {'finished' if is_last else 'tool_calls'}")
                    if not is_last:
                        later(0.6, f"r{model}{done[model]} asks {model} of=loop-{model}")
                case _:
                    pass
    assert done == {"a": rounds, "b": rounds}
    return loads


RENDERS = {
    "nothing else is loaded beside a render": """
        r1 asks v  -> load v1, loading r1
        v1 ready   -> grant r1
        r2 asks a  -> r2 at 1
        r1 ends    -> load a2, loading r2
        """,
    "what is ready is served beside a render": """
        load x a   -> load a1
        a1 ready   -> answer x done
        r1 asks v  -> load v2, loading r1
        v2 ready   -> grant r1
        r2 asks a  -> grant r2
        """,
    "renders load beside each other": """
        r1 asks v  -> load v1, loading r1
        v1 ready   -> grant r1
        r2 asks w  -> load w2, loading r2
        """,
    "a render waits for nothing but room": """
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        r2 asks v  -> load v2, loading r2
        """,
    "a render whose child died locks nobody out": """
        r1 asks v  -> load v1, loading r1
        v1 ready   -> grant r1
        r2 asks a  -> r2 at 1
        v1 fails   -> load a2, loading r2
        """,
    "an idle render model locks nobody out": """
        r1 asks v  -> load v1, loading r1
        v1 ready   -> grant r1
        r1 ends    ->
        r2 asks a  -> load a2, loading r2
        """,
    "the last of two renders opens the door": """
        r1 asks v  -> load v1, loading r1
        r2 asks w  -> load w2, loading r2
        v1 ready   -> grant r1
        w2 ready   -> grant r2
        r3 asks a  -> r3 at 1
        r1 ends    ->
        r2 ends    -> load a3, loading r3
        """,
}


@pytest.mark.parametrize("name", RENDERS)
def test_it_is_told_of_renders(name: str) -> None:
    Desk(spec_of("a b v w", renders="v w"), evicts={}).play(RENDERS[name])


def test_reasons_are_shown() -> None:
    desk = Desk(spec_of("a b v", renders="v", scheduler=HOLDS), evicts=A_FOR_B)
    reasons = []
    for words in (
        "r1 asks a",
        "a1 ready",
        "r1 ends tool_calls",
        "r2 asks b",
        "r3 asks v",
        "v2 ready",
    ):
        desk.say(words)
        line = views.line(desk.scheduler.state, Seconds(desk.now))
        reasons += [place.because for place in line if place.request == "r2"]

    assert reasons == [Because.HELD, Because.HELD, Because.RENDERING]


def test_once_a_held_model_is_in_use_another_makes_room() -> None:
    spec = spec_of("a b c", sizes={"a": 6, "b": 5, "c": 4}, vram_budget=MiB(12), scheduler=HOLDS)
    desk = Desk(spec)
    desk.play("""
        r1 asks c of=x     -> load c1, loading r1
        c1 ready           -> grant r1
        r1 ends tool_calls ->
        load x b           -> load b2
        b2 ready           -> answer x done
        r2 asks a          -> r2 at 1
        r3 asks c of=y     -> grant r3, stop b2, loading r2
        """)
