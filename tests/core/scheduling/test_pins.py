"""Pins: what an operator wants to stay is not evicted, under any policy."""

from collections.abc import Callable

import pytest

from qmsup.core.scheduling import stories
from qmsup.core.scheduling.effects import Refuse
from qmsup.core.scheduling.events import RequestArrived
from qmsup.ids import EventNumber, ModelId, RequestId
from qmsup.spec import AllOf, AnyOf, MatrixSpec, Pool, Spec
from qmsup.units import MiB, Seconds
from tests.support.scheduling import WORKER, Desk, Story, group, spec_of

A_FOR_B = {"b": "a"}

STORIES = {
    "who would need its memory is refused at once": Story(
        """
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        pin x a   -> answer x done
        r2 asks b -> refuse r2 blocked_by_pin
        """,
        evicts=A_FOR_B,
    ),
    "who waits already is refused too": Story(
        """
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        r2 asks b -> r2 at 1
        load l b  ->
        pin x a   -> answer x done, refuse r2 blocked_by_pin, answer l blocked_by_pin
        """,
    ),
    "an unpinned model makes room again": Story("""
        pin x a   -> answer x done
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        r2 asks b -> refuse r2 blocked_by_pin
        unpin y a -> answer y done
        r3 asks b -> r3 at 1
        r1 ends   -> stop a1, loading r3
        """),
    "a stop under way goes on": Story(
        """
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        r1 ends   ->
        r2 asks b -> stop a1, loading r2
        pin x a   -> answer x done
        a1 gone   -> load b2
        """,
        evicts=A_FOR_B,
    ),
    "one that an operator has unloaded goes, whoever asks meanwhile": Story(
        """
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        pin x a    -> answer x done
        unload z a -> cut r1 model_unloaded, stop a1
        r2 asks b  -> loading r2
        a1 gone    -> load b2, answer z done
        """,
        evicts=A_FOR_B,
    ),
    "one that is coming stands in the way as well": Story(
        """
        load l c  -> load c1
        c1 ready  -> answer l done
        pin x a   -> answer x done
        r1 asks a -> stop c1, loading r1
        r2 asks b -> refuse r2 blocked_by_pin
        c1 gone   -> load a2
        r3 asks b -> refuse r3 blocked_by_pin
        """,
        evicts={"a": "c", "b": "a"},
    ),
    "one whose load is given up does not": Story(
        """
        pin x a   -> answer x done
        r1 asks a -> load a1, loading r1
        unload y a -> refuse r1 model_unloaded, stop a1
        r2 asks b -> r2 at 1
        a1 gone   -> answer y done, load b2, loading r2
        """,
        evicts=A_FOR_B,
    ),
    "only what an operator asks for stops it": Story("""
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        pin x a    -> answer x done
        pin x a    -> answer x done
        pin y a    -> answer y done
        unload z a -> cut r1 model_unloaded, stop a1
        pin v q    -> answer v model_not_found
        unpin w q  -> answer w model_not_found
        """),
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_story(story: Story) -> None:
    story.play()


SIZES = {"a": 6, "b": 5, "c": 4, "d": 4}
A, B, C, D, E = (ModelId(m) for m in "abcde")

SPECS: dict[str, tuple[Callable[[], Spec], str]] = {
    "one group takes turns, so the pinned one blocks it": (lambda: spec_of("a b c"), "refuse"),
    "another group leaves the pinned one alone": (
        lambda: spec_of("a b c", groups=(group("g", "a"), group("h", "b"))),
        "load",
    ),
    "a budget takes others": (
        lambda: spec_of("a b c", sizes=SIZES, vram_budget=MiB(14)),
        "load",
    ),
    "what does not fit beside it goes over the budget, as beside a persistent one": (
        lambda: spec_of("a b c", sizes=SIZES, vram_budget=MiB(9)),
        "load",
    ),
    "a target of unknown size takes turns in its group": (
        lambda: spec_of("a b c", sizes={"a": 6}, vram_budget=MiB(9)),
        "refuse",
    ),
    "a matrix that has them together": (
        lambda: spec_of("a b c", matrix=MatrixSpec(sets={"s": AllOf((A, AnyOf((B, C))))})),
        "load",
    ),
    "a matrix that has not": (
        lambda: spec_of("a b c", matrix=MatrixSpec(sets={"s": AllOf((A, C)), "t": B})),
        "refuse",
    ),
    "in RAM": (
        lambda: spec_of(
            "a b c", rams=SIZES, groups=(group("cpu", "a b c", pool=Pool.RAM),), ram_budget=MiB(9)
        ),
        "load",
    ),
}


@pytest.mark.parametrize(("spec", "wanted"), SPECS.values(), ids=SPECS.keys())
def test_a_pin_under_each_policy(spec: Callable[[], Spec], wanted: str) -> None:
    desk = Desk(spec())
    desk.play("""
        pin x a  -> answer x done
        load l a -> load a1
        a1 ready -> answer l done
        """)

    told = desk.say("r2 asks b")

    assert told == {"load": "load b2, loading r2", "refuse": "refuse r2 blocked_by_pin"}[wanted]


def test_a_budget_takes_what_is_not_pinned() -> None:
    desk = Desk(spec_of("a b c d", sizes=SIZES, vram_budget=MiB(11)))
    desk.play("""
        load x a -> load a1
        a1 ready -> answer x done
        load y c -> load c2
        c2 ready -> answer y done
        pin z a  -> answer z done
        r1 asks d -> stop c2, loading r1
        """)


TOO_LARGE = {**SIZES, "d": 10}
BESIDE_A = "5 MiB over the 11 MiB of VRAM for models, beside a (pinned)"


def decisions(desk: Desk) -> list[tuple[str, str]]:
    return [(r.decision, r.because) for r in desk.records() if r.decision.startswith("swap")]


def test_what_is_loaded_beside_pinned_models_over_the_budget_is_told_as_that() -> None:
    desk = Desk(spec_of("a b c d", sizes=TOO_LARGE, vram_budget=MiB(11)))
    desk.play("""
        load x a  -> load a1
        a1 ready  -> answer x done
        pin z a   -> answer z done
        r1 asks d -> load d2, loading r1
        """)

    assert decisions(desk) == [("swap.started", "over_budget"), ("swap.over_budget", BESIDE_A)]
    event = RequestArrived(request=RequestId("r1"), listener=WORKER, model=D)
    turn = stories.Turn(EventNumber(1), Seconds(0.0), event, desk.effects)
    assert [sentence.text for sentence in stories.of_model(D, [turn])] == [
        "loading d for r1 began; nothing may stop for it, and beside what runs it is over the budget",
        f"d is loaded all the same, though nothing more may stop for it: {BESIDE_A}",
    ]


def test_so_is_what_is_over_it_once_all_that_may_stop_has() -> None:
    desk = Desk(spec_of("a b c d", sizes=TOO_LARGE, vram_budget=MiB(11)))
    desk.play("""
        load x a  -> load a1
        a1 ready  -> answer x done
        load y c  -> load c2
        c2 ready  -> answer y done
        pin z a   -> answer z done
        r1 asks d -> stop c2, loading r1
        """)

    assert decisions(desk) == [("swap.started", "budget"), ("swap.over_budget", BESIDE_A)]


def test_a_refusal_names_what_is_pinned() -> None:
    desk = Desk(spec_of("a b"))
    for words in ("load l a", "a1 ready", "pin x a", "r1 asks b"):
        desk.say(words)

    [refuse] = [effect for effect in desk.effects if isinstance(effect, Refuse)]
    assert refuse.refusal.message == (
        "loading 'b' would stop 'a', which an operator has pinned: unpin it first"
    )


def test_of_those_that_would_stop_only_the_pinned_are_named() -> None:
    desk = Desk(spec_of("a b c"), evicts={"b": "a c"})
    for words in ("load l a", "a1 ready", "load m c", "c2 ready", "pin x a", "r1 asks b"):
        desk.say(words)

    [refuse] = [effect for effect in desk.effects if isinstance(effect, Refuse)]
    assert refuse.refusal.message.startswith("loading 'b' would stop 'a', which")


def test_a_pin_and_its_end_are_recorded_once() -> None:
    desk = Desk(spec_of("a"))
    told = []
    for words in ("pin x a", "pin y a", "unpin z a", "unpin w a"):
        desk.say(words)
        told += [record.decision for record in desk.records()]

    assert told == ["model.pinned", "model.unpinned"]


def test_a_pinned_model_that_is_loaded_refuses_who_waits_already() -> None:
    # a and b take turns, and so do b and c; a and c stand beside each other.
    pairs = MatrixSpec(sets={"s": AllOf((A, C)), "t": B})
    desk = Desk(spec_of("a b c", matrix=pairs))

    desk.play("""
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        pin x c   -> answer x done
        r2 asks b -> r2 at 1
        r3 asks c -> load c2, loading r3, refuse r2 blocked_by_pin
        """)


def test_a_load_beside_which_a_pinned_model_would_have_to_stop_refuses_who_waits() -> None:
    # Once c is there, e does best by keeping that instead of a.
    sets = {"with a": AllOf((A, E)), "with c": AllOf((C, E)), "without e": AllOf((A, C, D))}
    dear_c = MatrixSpec(sets=sets, costs={C: 5})
    desk = Desk(spec_of("a c d e", matrix=dear_c))

    desk.play("""
        load x a  -> load a1
        a1 ready  -> answer x done
        pin y a   -> answer y done
        r1 asks d -> load d2, loading r1
        d2 ready  -> grant r1
        r2 asks e -> r2 at 1
        r3 asks c -> load c3, loading r3, refuse r2 blocked_by_pin
        """)
