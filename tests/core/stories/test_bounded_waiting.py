"""Nobody waits for ever: whoever is past its patience closes what it needs to those who came later."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import pytest

from qmsup.ids import ModelId
from qmsup.units import MiB
from tests.support.scheduling import Desk, spec_of


@dataclass(frozen=True, slots=True)
class Told:
    """A story and the box it happens on."""

    told: str
    evicts: Mapping[str, str]
    slots: int = 4
    renders: str = ""


STORIES = {
    "overlapping requests on a model end before somebody who has waited long enough": Told(
        """
        r1 asks a            -> load a1, loading r1
        a1 ready             -> grant r1
        late asks b patience=1 -> late at 1
        r2 asks a            -> grant r2
        at 0.5               ->
        r1 ends              ->
        r3 asks a            -> grant r3
        at 1                 ->
        r4 asks a            -> r4 at 2
        r2 ends              ->
        r5 asks a            -> r5 at 3
        r3 ends              -> stop a1, loading late
        a1 gone              -> load b2
        b2 ready             -> grant late
        late ends            -> stop b2, loading r4, loading r5
        b2 gone              -> load a3
        a3 ready             -> grant r4, grant r5
        """,
        {"a": "b", "b": "a"},
    ),
    "with patience 0 it begins at once": Told(
        """
        r1 asks a              -> load a1, loading r1
        a1 ready               -> grant r1
        late asks b patience=0 -> late at 1
        r2 asks a              -> r2 at 2
        r1 ends                -> stop a1, loading late
        """,
        {"a": "b", "b": "a"},
    ),
    "who leaves opens what it closed": Told(
        """
        r1 asks a              -> load a1, loading r1
        a1 ready               -> grant r1
        late asks b patience=0 -> late at 1
        r2 asks a              -> r2 at 2
        late leaves            -> grant r2
        """,
        {"b": "a"},
    ),
    "so does who runs out of time": Told(
        """
        r1 asks a                        -> load a1, loading r1
        a1 ready                         -> grant r1
        r1 accepts                       ->
        late asks b patience=0 timeout=3 -> late at 1
        r2 asks a                        -> r2 at 2
        at 3                             -> refuse late wait_timeout, grant r2
        """,
        {"b": "a"},
    ),
    "and who falls silent; heard again, it stands where it arrived": Told(
        """
        r1 asks a                     -> load a1, loading r1
        a1 ready                      -> grant r1
        late asks b patience=0 from=w2 -> late at 1
        r2 asks a                     -> r2 at 2
        w2 silent                     -> grant r2
        r3 asks a from=w2             -> r3 at 2
        r4 asks a                     -> r4 at 3
        """,
        {"b": "a"},
    ),
    "a load of a closed model takes nothing, so it need not wait": Told(
        """
        r1 asks a              -> load a1, loading r1
        a1 ready               -> grant r1
        late asks b patience=0 -> late at 1
        load x a               -> answer x done
        """,
        {"b": "a"},
    ),
    "who waits for a place at the limit closes nothing": Told(
        """
        load x v               -> load v1
        v1 ready               -> answer x done
        r1 asks a              -> load a2, loading r1
        a2 ready               -> grant r1
        late asks a patience=0 -> late at 1
        r2 asks v              -> grant r2
        """,
        {},
        slots=1,
        renders="v",
    ),
    "other models are served and loaded meanwhile": Told(
        """
        r1 asks a              -> load a1, loading r1
        a1 ready               -> grant r1
        late asks b patience=0 -> late at 1
        r2 asks c              -> load c2, loading r2
        c2 ready               -> grant r2
        r3 asks c              -> grant r3
        """,
        {"b": "a"},
    ),
    "what it needs is not loaded or stopped for others": Told(
        """
        r1 asks a              -> load a1, loading r1
        a1 ready               -> grant r1
        load x c               -> load c2
        c2 ready               -> answer x done
        late asks b patience=0 -> late at 1
        r2 asks d              -> r2 at 2
        r3 asks e              -> r3 at 3
        r1 ends                -> stop a1, stop c2, loading late
        """,
        {"b": "a c", "d": "c", "e": "b"},
    ),
    "nor is what it would stop loaded anew": Told(
        """
        r1 asks a              -> load a1, loading r1
        a1 ready               -> grant r1
        late asks b patience=0 -> late at 1
        r2 asks c              -> r2 at 2
        r1 ends                -> stop a1, loading late
        """,
        {"b": "a c"},
    ),
    "while it waits for a load, others that do not touch it go on": Told(
        """
        r1 asks a              -> load a1, loading r1
        late asks b patience=0 -> late at 1
        r2 asks c              -> load c2, loading r2
        c2 ready               -> grant r2
        """,
        {"b": "a"},
    ),
    "two that do not meet close side by side": Told(
        """
        r1 asks a            -> load a1, loading r1
        a1 ready             -> grant r1
        r2 asks c            -> load c2, loading r2
        c2 ready             -> grant r2
        r3 asks b patience=0 -> r3 at 1
        r4 asks d patience=0 -> r4 at 2
        r5 asks a            -> r5 at 3
        r6 asks c            -> r6 at 4
        r2 ends              -> stop c2, loading r4
        r1 ends              -> stop a1, loading r3
        """,
        {"b": "a", "d": "c"},
    ),
    "of two that meet the first in the line closes": Told(
        """
        r1 asks a            -> load a1, loading r1
        a1 ready             -> grant r1
        r2 asks c            -> load c2, loading r2
        c2 ready             -> grant r2
        r3 asks b patience=0 -> r3 at 1
        r4 asks d patience=0 -> r4 at 2
        r5 asks c            -> grant r5
        """,
        {"b": "a", "d": "a c"},
    ),
    "an earlier one whose patience ends later goes before it": Told(
        """
        r1 asks a              -> load a1, loading r1
        a1 ready               -> grant r1
        r1 accepts             ->
        r2 asks a patience=5   -> r2 at 1
        r3 asks b patience=1   -> r3 at 2
        at 1                   ->
        r4 asks a              -> r4 at 3
        r1 ends                -> stop a1, loading r3
        """,
        {"b": "a"},
        slots=1,
    ),
    "who is past its patience before it is not closed out": Told(
        """
        r1 asks a              -> load a1, loading r1
        a1 ready               -> grant r1
        r1 accepts             ->
        r2 asks a patience=0   -> r2 at 1
        r3 asks b patience=0   -> r3 at 2
        r4 asks a patience=0   -> r4 at 3
        r1 ends                -> grant r2
        r2 ends                -> stop a1, loading r3
        """,
        {"b": "a"},
        slots=1,
    ),
    "what was loaded serves those it was loaded for before it is closed": Told(
        """
        r1 asks a              -> load a1, loading r1
        late asks b patience=0 -> late at 1
        r2 asks a              -> loading r2
        a1 ready               -> grant r1, grant r2
        r3 asks a              -> r3 at 2
        r1 ends                ->
        r2 ends                -> stop a1, loading late
        """,
        {"b": "a"},
    ),
    "joiners over the limit yield to who was there before them": Told(
        """
        r1 asks a              -> load a1, loading r1
        late asks b patience=0 -> late at 1
        r2 asks a              -> loading r2
        a1 ready               -> grant r1
        r1 ends                -> stop a1, loading late
        """,
        {"b": "a"},
        slots=1,
    ),
    "overlapping renders end before somebody they lock out": Told(
        """
        r1 asks v              -> load v1, loading r1
        v1 ready               -> grant r1
        late asks b patience=0 -> late at 1
        r2 asks v              -> r2 at 2
        r1 ends                -> load b2, loading late, grant r2
        """,
        {},
        renders="v w",
    ),
    "two render models do not take turns in locking it out": Told(
        """
        r1 asks v              -> load v1, loading r1
        v1 ready               -> grant r1
        load x w               -> load w2
        w2 ready               -> answer x done
        late asks b patience=0 -> late at 1
        r2 asks w              -> r2 at 2
        r1 ends                -> load b3, loading late, grant r2
        """,
        {},
        renders="v w",
    ),
    "nor one that would have to be loaded first": Told(
        """
        r1 asks v              -> load v1, loading r1
        v1 ready               -> grant r1
        late asks b patience=0 -> late at 1
        r2 asks w              -> r2 at 2
        r1 ends                -> load b2, loading late, load w3, loading r2
        """,
        {},
        renders="v w",
    ),
    "a render that waits lets other renders pass": Told(
        """
        r1 asks a              -> load a1, loading r1
        a1 ready               -> grant r1
        r2 asks v patience=0   -> r2 at 1
        r3 asks w              -> load w2, loading r3
        """,
        {"v": "a"},
        renders="v w",
    ),
    "a request whose job is not leased yet gets that lease on a closed model": Told(
        """
        r1 asks v              -> load v1, loading r1
        v1 ready               -> grant r1
        late asks b patience=0 -> late at 1
        lease x j1 v           -> answer x done
        r1 ends                ->
        lease y j2 v           ->
        release z j1           -> answer z done, load b2, loading late, answer y done
        """,
        {},
        renders="v",
    ),
    "a model in a long job is not closed, nor what would have to stop beside it": Told(
        """
        lease x j1 a           -> load a1
        a1 ready               -> answer x done
        load y c               -> load c2
        c2 ready               -> answer y done
        late asks b patience=0 -> late at 1
        r1 asks a              -> grant r1
        r2 asks c              -> grant r2
        r3 asks d              -> r3 at 2
        r2 ends                -> stop c2, loading r3
        release z j1           -> answer z done
        r4 asks a              -> r4 at 2
        """,
        {"b": "a c", "d": "c"},
    ),
    "others that take turns in what it needs do so no more": Told(
        """
        r1 asks d            -> load d1, loading r1
        late asks b patience=1 -> late at 1
        r2 asks e            -> r2 at 2
        d1 ready             -> grant r1
        r1 accepts           ->
        at 0.5               ->
        r1 ends              -> stop d1, loading late
        d1 gone              -> load b2
        b2 ready             -> grant late
        late ends            -> stop b2, loading r2
        """,
        {"b": "c d e", "c": "b d e", "d": "b c e", "e": "b c d"},
    ),
    "nor while higher priority, holds and bursts would keep it behind": Told(
        """
        r1 asks d            -> load d1, loading r1
        d1 ready             -> grant r1
        late asks b patience=1 -> late at 1
        r2 asks d            -> grant r2
        r1 ends              ->
        r3 asks e            -> r3 at 2
        r4 asks d            -> grant r4
        r2 ends              ->
        at 1                 ->
        r5 asks d            -> r5 at 3
        r6 asks c            -> r6 at 4
        r4 ends              -> stop d1, loading late
        r7 asks d            -> r7 at 4
        d1 gone              -> load b2
        b2 ready             -> grant late
        late ends            -> stop b2, loading r3
        """,
        {"b": "c d e", "c": "b d e", "d": "b c e", "e": "b c d"},
    ),
    "a chain of them is served one after the other, as they came": Told(
        """
        r1 asks a            -> load a1, loading r1
        a1 ready             -> grant r1
        r2 asks b patience=0 -> r2 at 1
        r3 asks c patience=0 -> r3 at 2
        r4 asks a patience=0 -> r4 at 3
        r1 ends              -> stop a1, loading r2
        a1 gone              -> load b2
        r5 asks b            -> loading r5
        b2 ready             -> grant r2, grant r5
        r6 asks b            -> r6 at 3
        r2 ends              ->
        r5 ends              -> stop b2, loading r3
        b2 gone              -> load c3
        c3 ready             -> grant r3
        r3 ends              -> stop c3, loading r4
        """,
        {"a": "b c", "b": "a c", "c": "a b"},
    ),
}


@pytest.mark.parametrize("name", STORIES)
def test_it_is_told(name: str) -> None:
    story = STORIES[name]
    spec = spec_of("a b c d e v w", slots=story.slots, renders=story.renders)
    Desk(spec, evicts=story.evicts).play(story.told)


def test_nothing_is_loaded_that_it_would_have_to_stop_as_well() -> None:
    sizes = {"a": 8, "b": 9, "c": 4, "d": 3}
    desk = Desk(spec_of("a b c d", sizes=sizes, vram_budget=MiB(12)))
    desk.play("""
        r1 asks a              -> load a1, loading r1
        a1 ready               -> grant r1
        late asks b patience=0 -> late at 1
        r2 asks c              -> r2 at 2
        r3 asks d              -> load d2, loading r3
        d2 ready               -> grant r3
        r3 ends                ->
        late leaves            -> stop d2, loading r2
        """)


def test_what_runs_beside_counts_in_what_it_would_have_to_stop() -> None:
    # b fits beside d once a has stopped, and beside e; but not beside both.
    sizes = {"a": 8, "b": 9, "d": 3, "e": 1}
    desk = Desk(spec_of("a b d e", sizes=sizes, vram_budget=MiB(12)))
    desk.play("""
        load x d               -> load d1
        d1 ready               -> answer x done
        r1 asks a              -> load a2, loading r1
        a2 ready               -> grant r1
        r1 accepts             ->
        r2 asks d              -> grant r2
        late asks b patience=0 -> late at 1
        r3 asks e              -> r3 at 2
        """)


def test_it_is_recorded_once_who_closes_what() -> None:
    desk = Desk(spec_of("a b c"), evicts={"b": "a"})
    told = []
    for words in (
        "r1 asks a",
        "a1 ready",
        "r2 asks b patience=0",
        "r3 asks b patience=0",
        "r4 asks a",
        "r2 leaves",
        "r3 leaves",
    ):
        desk.say(words)
        told += [(words, r.model, r.evicts) for r in desk.records() if r.decision == "line.closes"]

    assert told == [
        ("r2 asks b patience=0", "b", ("a",)),
        ("r2 leaves", "b", ("a",)),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ByCompany:
    """Loading b stops a; c too beside both x and y, or z instead where y is gone. Loading x stops y."""

    beside_both: tuple[str, ...]
    without_y: tuple[str, ...]
    name: str = "company"

    def eviction_for(self, target: ModelId, running: Sequence[ModelId]) -> tuple[ModelId, ...]:
        stops: tuple[str, ...] = ("a",) if target == "b" else ()
        if target == "x":
            stops = ("y",)
        elif target == "b" and "x" in running:
            stops = self.beside_both if "y" in running else self.without_y
        return tuple(ModelId(model) for model in stops)

    def likeness(self, target: ModelId) -> Hashable:
        return target


@pytest.mark.parametrize(
    ("beside_both", "without_y", "waits"),
    [
        (("a",), ("a",), False),
        (("a", "c"), ("a",), True),
        (("a",), ("a", "z"), True),
        (("a",), ("z",), True),
        (("a",), (), False),
    ],
)
def test_neither_under_way_nor_done_may_a_load_make_it_stop_more(
    beside_both: tuple[str, ...], without_y: tuple[str, ...], *, waits: bool
) -> None:
    desk = Desk(spec_of("a b c x y z"))
    desk.scheduler.state.policy = ByCompany(beside_both=beside_both, without_y=without_y)
    desk.play("""
        r1 asks a              -> load a1, loading r1
        a1 ready               -> grant r1
        load l y               -> load y2
        y2 ready               -> answer l done
        late asks b patience=0 -> late at 1
        """)

    assert desk.say("r2 asks x") == ("r2 at 2" if waits else "stop y2, loading r2")


def test_a_render_that_goes_on_after_all_keeps_a_closer_as_well_as_the_load_in_its_way() -> None:
    desk = Desk(spec_of("a b c d", renders="c"), evicts={"a": "d"})
    desk.play("""
        r1 asks c            -> load c1, loading r1
        c1 ready             -> grant r1
        at 6                 ->
        load x d             -> load d2
        r2 asks a patience=0 -> r2 at 1
        r1 accepts           ->
        d2 ready             -> answer x done
        r1 ends              -> stop d2, loading r2
        """)
