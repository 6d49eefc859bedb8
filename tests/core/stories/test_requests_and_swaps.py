"""Who is served, who waits, what is loaded and what stops for it: stories that can be checked by reading."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from tests.support.scheduling import Desk, spec_of


@dataclass(frozen=True)
class Story:
    """`evicts`: what loading each model stops; `slots`: how many requests each takes at once."""

    told: str
    models: str = "a b c"
    evicts: Mapping[str, str] | None = None
    slots: int = 4


A_FOR_B = {"b": "a"}
EXCLUSIVE = {"a": "b c", "b": "a c", "c": "a b"}

STORIES = {
    "a ready model serves at once": Story("""
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        r2 asks a  -> grant r2
        """),
    "a model that is not configured is refused": Story("""
        r1 asks ghost -> refuse r1 model_not_found
        """),
    "three requests cost one load": Story("""
        r1 asks a  -> load a1, loading r1
        r2 asks a  -> loading r2
        r3 asks a  -> loading r3
        a1 ready   -> grant r1, grant r2, grant r3
        """),
    "a load that fails refuses everybody who waited for it": Story("""
        r1 asks a  -> load a1, loading r1
        r2 asks a  -> loading r2
        a1 fails   -> refuse r1 model_load_failed, refuse r2 model_load_failed
        """),
    "a busy model is not evicted": Story(
        """
        r1 asks a  -> load a1, loading r1
        r2 asks b  -> r2 at 1
        a1 ready   -> grant r1
        r1 accepts ->
        r1 ends    -> stop a1, loading r2
        a1 gone    -> load b2
        b2 ready   -> grant r2
        """,
        evicts=A_FOR_B,
    ),
    "models that do not meet load side by side": Story(
        """
        r1 asks a  -> load a1, loading r1
        r2 asks b  -> load b2, loading r2
        b2 ready   -> grant r2
        a1 ready   -> grant r1
        """,
        evicts={},
    ),
    "two swaps never share a victim": Story(
        """
        r0 asks x  -> load x1, loading r0
        x1 ready   -> grant r0
        r0 ends    ->
        r1 asks a  -> stop x1, loading r1
        r2 asks b  -> r2 at 1
        x1 gone    -> load a2
        a2 ready   -> grant r1, load b3, loading r2
        """,
        models="a b x",
        evicts={"a": "x", "b": "x"},
    ),
    "what waited for one swap starts together when it ends": Story(
        """
        r1 asks a  -> load a1, loading r1
        r2 asks b  -> r2 at 1
        r3 asks c  -> r3 at 2
        a1 ready   -> grant r1, load b2, loading r2, load c3, loading r3
        """,
        evicts={"a": "b c"},
    ),
    "a b c a b c over three exclusive models costs three loads": Story(
        """
        a1 asks a  -> load a1, loading a1
        b1 asks b  -> b1 at 1
        c1 asks c  -> c1 at 2
        a2 asks a  -> loading a2
        b2 asks b  -> b2 at 3
        c2 asks c  -> c2 at 4
        a1 ready   -> grant a1, grant a2
        a1 ends    ->
        a2 ends    -> stop a1, loading b1, loading b2
        a1 gone    -> load b2
        b2 ready   -> grant b1, grant b2
        b1 ends    ->
        b2 ends    -> stop b2, loading c1, loading c2
        b2 gone    -> load c3
        c3 ready   -> grant c1, grant c2
        """,
        evicts=EXCLUSIVE,
    ),
    "the last of two leases counts": Story(
        """
        r1 asks a  -> load a1, loading r1
        r2 asks a  -> loading r2
        r3 asks b  -> r3 at 1
        a1 ready   -> grant r1, grant r2
        r1 ends    ->
        r2 ends    -> stop a1, loading r3
        """,
        evicts=A_FOR_B,
    ),
    "a declined grant leaves nothing in flight": Story(
        """
        r1 asks a   -> load a1, loading r1
        r2 asks b   -> r2 at 1
        a1 ready    -> grant r1
        r1 declines -> stop a1, loading r2
        """,
        evicts=A_FOR_B,
    ),
    "shutdown refuses all who wait": Story(
        """
        a1 asks a  -> load a1, loading a1
        a2 asks a  -> loading a2
        b1 asks b  -> load b2, loading b1
        b2 asks b  -> loading b2
        c1 asks c  -> c1 at 1
        shutdown   -> refuse c1 shutting_down, refuse a1 shutting_down, refuse a2 shutting_down, \
stop a1, refuse b1 shutting_down, refuse b2 shutting_down, stop b2
        a1 gone    ->
        b2 fails   -> end
        """,
        evicts={"c": "a b"},
    ),
    "unloading a refuses its joiners, stops it once, and leaves b alone": Story(
        """
        r1 asks a  -> load a1, loading r1
        r2 asks a  -> loading r2
        r3 asks b  -> r3 at 1
        unload x a -> refuse r1 model_unloaded, refuse r2 model_unloaded, stop a1
        a1 gone    -> answer x done, load b2, loading r3
        """,
        evicts=A_FOR_B,
    ),
    "a waiter that left is never served": Story(
        """
        r1 asks a  -> load a1, loading r1
        r2 asks b  -> r2 at 1
        r2 leaves  ->
        a1 ready   -> grant r1
        r1 ends    ->
        """,
        evicts=A_FOR_B,
    ),
    "a joiner that left is not granted, the other is": Story("""
        r1 asks a  -> load a1, loading r1
        r2 asks a  -> loading r2
        r1 leaves  ->
        a1 ready   -> grant r2
        """),
    "at the limit the next one waits": Story(
        """
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        r2 asks a  -> r2 at 1
        r1 ends    -> grant r2
        """,
        slots=1,
    ),
    "joiners over the limit return to the line": Story(
        """
        r1 asks a  -> load a1, loading r1
        r2 asks a streaming  -> loading r2
        r3 asks a streaming  -> loading r3
        a1 ready   -> grant r1, grant r2, r3 at 1
        r2 ends    -> grant r3
        """,
        slots=2,
    ),
    "a joiner that returns stands where it arrived": Story(
        """
        r1 asks a  -> load a1, loading r1
        r2 asks a streaming -> loading r2
        r3 asks b streaming -> r3 at 1
        a1 ready   -> grant r1, r2 at 1 r3 at 2
        """,
        evicts=A_FOR_B,
        slots=1,
    ),
    "a load that nobody wants goes on until it is in the way": Story(
        """
        r1 asks a  -> load a1, loading r1
        r1 leaves  ->
        r2 asks b  -> r2 at 1, abort a1
        a1 gone    -> load b2, loading r2
        """,
        evicts=A_FOR_B,
    ),
    "a load in the way is given up when its last client leaves": Story(
        """
        r1 asks a  -> load a1, loading r1
        r2 asks b  -> r2 at 1
        r1 leaves  -> abort a1
        a1 fails   -> load b2, loading r2
        """,
        evicts=A_FOR_B,
    ),
    "a load with a live client is not given up": Story(
        """
        r1 asks a  -> load a1, loading r1
        r2 asks a  -> loading r2
        r1 leaves  ->
        r3 asks b  -> r3 at 1
        a1 ready   -> grant r2
        """,
        evicts=A_FOR_B,
    ),
    "a request that comes while its load is given up is served later": Story(
        """
        r1 asks a  -> load a1, loading r1
        r1 leaves  ->
        r2 asks b  -> r2 at 1, abort a1
        r3 asks a  -> r3 at 2
        a1 gone    -> load b2, loading r2
        b2 ready   -> grant r2, load a3, loading r3
        a3 ready   -> grant r3
        """,
        evicts=A_FOR_B,
    ),
    "a swap that still evicts is given up, and ends with its victims": Story(
        """
        r0 asks x  -> load x1, loading r0
        x1 ready   -> grant r0
        r0 ends    ->
        r1 asks a  -> stop x1, loading r1
        r1 leaves  ->
        r2 asks b  -> r2 at 1
        r3 asks a  -> r3 at 2
        x1 gone    -> load b2, loading r2
        b2 ready   -> grant r2, load a3, loading r3
        """,
        models="a b x",
        evicts={"a": "x", "b": "x a"},
    ),
    "a request for a victim waits for the swap that stops it": Story(
        """
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        r1 ends    ->
        r2 asks b  -> stop a1, loading r2
        r3 asks a  -> r3 at 1
        a1 gone    -> load b2
        b2 ready   -> grant r2, load a3, loading r3
        """,
        evicts=A_FOR_B,
    ),
    "a model stops for eight seconds and others are served meanwhile": Story(
        """
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        r2 asks b  -> load b2, loading r2
        b2 ready   -> grant r2
        unload x a -> cut r1 model_unloaded, stop a1
        at 8       ->
        r3 asks b  -> grant r3
        a1 gone    -> answer x done
        """,
        evicts={},
    ),
    "a lost listener takes its leases and waiters with it": Story(
        """
        r1 asks a from=w2 -> load a1, loading r1
        r2 asks a from=w2 -> loading r2
        r3 asks a from=w2 -> loading r3
        r4 asks b         -> r4 at 1
        r5 asks b from=w2 -> r5 at 2
        a1 ready          -> grant r1, grant r2, grant r3
        r1 accepts        ->
        w2 lost           -> stop a1, loading r4
        r6 asks a from=w2 ->
        """,
        evicts=A_FOR_B,
    ),
    "the end of an older incarnation does not end the swap": Story("""
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        unload x a -> cut r1 model_unloaded, stop a1
        r2 asks a  -> load a2, loading r2
        a1 gone    -> answer x done
        a1 gone    ->
        a2 ready   -> grant r2
        """),
    "ready crossing an abort grants nobody": Story(
        """
        r1 asks a  -> load a1, loading r1
        r1 leaves  ->
        r2 asks b  -> r2 at 1, abort a1
        r3 asks a  -> r3 at 2
        a1 ready   ->
        a1 gone    -> load b2, loading r2
        """,
        evicts=A_FOR_B,
    ),
    "a failed start is not tried again before its back-off": Story("""
        r1 asks a  -> load a1, loading r1
        a1 fails   -> refuse r1 model_load_failed
        r2 asks a  -> refuse r2 model_unavailable
        at 1       ->
        r3 asks a  -> load a2, loading r3
        a2 fails   -> refuse r3 model_load_failed
        at 2.5     ->
        r4 asks a  -> refuse r4 model_unavailable
        at 3       ->
        r5 asks a  -> load a3, loading r5
        a3 ready   -> grant r5
        """),
    "a request that comes while its model stops is served by the next start": Story("""
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        r1 ends    ->
        unload x a -> stop a1
        r2 asks a  -> load a2, loading r2
        a2 ready   -> grant r2
        a1 gone    -> answer x done
        """),
    "a drained model serves what it has, then stops, then starts again": Story("""
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        drain x a  ->
        r2 asks a  -> r2 at 1
        load y a   ->
        r1 ends    -> stop a1, load a2, loading r2
        a1 gone    -> answer x done
        a2 ready   -> grant r2, answer y done
        """),
    "draining an idle model stops it at once": Story("""
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        r1 ends    ->
        drain x a  -> stop a1
        a1 gone    -> answer x done
        """),
    "draining a model that loads gives the load up": Story("""
        r1 asks a  -> load a1, loading r1
        drain x a  -> refuse r1 model_unloaded, stop a1
        a1 gone    -> answer x done
        """),
    "a drain that turns into an unload cuts": Story("""
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        drain x a  ->
        unload y a -> cut r1 model_unloaded, stop a1
        a1 gone    -> answer x done, answer y done
        """),
    "a model that crashes while it drains has stopped": Story("""
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        drain x a  ->
        a1 fails   -> answer x done
        """),
    "unload without names stops everything": Story(
        """
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        r2 asks b  -> load b2, loading r2
        unload x   -> cut r1 model_unloaded, stop a1, refuse r2 model_unloaded, stop b2
        b2 gone    ->
        a1 gone    -> answer x done
        """,
        evicts={},
    ),
    "unloading what does not run is done at once": Story("""
        unload x a     -> answer x done
        unload x a     -> answer x done
        unload y ghost -> answer y model_not_found
        """),
    "an unload cuts before it stops": Story("""
        r1 asks a  -> load a1, loading r1
        r2 asks a  -> loading r2
        a1 ready   -> grant r1, grant r2
        r1 accepts ->
        unload x a -> cut r1 model_unloaded, cut r2 model_unloaded, stop a1
        r1 ends    ->
        r2 accepts ->
        """),
    "an unload of a swap's target lets the victims go": Story(
        """
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        r1 ends    ->
        r2 asks b  -> stop a1, loading r2
        unload x b -> refuse r2 model_unloaded, answer x done
        r3 asks b  -> r3 at 1
        a1 gone    -> load b2, loading r3
        """,
        evicts=A_FOR_B,
    ),
    "an unload waits for an older incarnation too": Story("""
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        unload x a -> cut r1 model_unloaded, stop a1
        r2 asks a  -> load a2, loading r2
        unload y a -> refuse r2 model_unloaded, stop a2
        a2 gone    ->
        a1 gone    -> answer x done, answer y done
        """),
    "a crash frees the place for others": Story(
        """
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        r2 asks b  -> r2 at 1
        a1 fails   -> load b2, loading r2
        r1 ends unserved ->
        b2 ready   -> grant r2
        """
    ),
    "a crash before the first answer starts the back-off, an answer ends it": Story("""
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        a1 fails   ->
        r2 asks a  -> refuse r2 model_unavailable
        r1 ends    ->
        r3 asks a  -> load a2, loading r3
        a2 ready   -> grant r3
        r3 ends    ->
        a2 fails   ->
        r4 asks a  -> load a3, loading r4
        """),
    "a start that stops unasked has failed": Story("""
        r1 asks a  -> load a1, loading r1
        a1 gone    -> refuse r1 model_load_failed
        r2 asks a  -> refuse r2 model_unavailable
        """),
    "a load that failed leaves the line to others": Story(
        """
        r1 asks a  -> load a1, loading r1
        r2 asks b  -> r2 at 1
        a1 fails   -> refuse r1 model_load_failed, load b2, loading r2
        """,
        evicts=A_FOR_B,
    ),
    "an unanswered offer lapses": Story(
        """
        r1 asks a  -> load a1, loading r1
        r2 asks b  -> r2 at 1
        a1 ready   -> grant r1
        at 5       -> stop a1, loading r2
        r1 accepts -> cut r1 model_unloaded
        """,
        evicts=A_FOR_B,
    ),
    "a late acceptance revives the lease if the same child is ready": Story(
        """
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        at 5       ->
        r1 accepts ->
        r2 asks b  -> r2 at 1
        r1 ends    -> stop a1, loading r2
        """,
        evicts=A_FOR_B,
    ),
    "a late refusal or end of a lapsed offer changes nothing": Story("""
        r1 asks a   -> load a1, loading r1
        r2 asks a   -> loading r2
        a1 ready    -> grant r1, grant r2
        at 5        ->
        r1 declines ->
        r1 accepts  ->
        r2 ends     ->
        r2 accepts  ->
        """),
    "a client that leaves while its grant is under way frees the lease": Story(
        """
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        r2 asks b  -> r2 at 1
        r1 leaves  -> stop a1, loading r2
        r1 declines ->
        """,
        evicts=A_FOR_B,
    ),
    "a held lease is not ended by a late leave": Story(
        """
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        r1 accepts ->
        r1 accepts ->
        r1 leaves  ->
        r2 asks b  -> r2 at 1
        nobody leaves ->
        """,
        evicts=A_FOR_B,
    ),
    "asking again gets the last answer again": Story(
        """
        r1 asks a  -> load a1, loading r1
        r1 asks a  -> loading r1
        r2 asks b  -> r2 at 1
        r2 asks b  -> r2 at 1
        a1 ready   -> grant r1
        r1 asks a  -> grant r1
        r3 asks x  -> refuse r3 model_not_found
        r3 asks x  -> refuse r3 model_not_found
        """,
        evicts=A_FOR_B,
    ),
    "a deadline in the line and one in a swap": Story(
        """
        r1 asks a timeout=3 -> load a1, loading r1
        r2 asks b timeout=2 -> r2 at 1
        r3 asks b timeout=0 -> r3 at 2
        at 2       -> refuse r2 wait_timeout
        at 3       -> refuse r1 wait_timeout, abort a1
        a1 gone    -> load b2, loading r3
        """,
        evicts=A_FOR_B,
    ),
    "a load asked by a control client is waited for like a request's": Story(
        """
        load x a   -> load a1
        load x a   ->
        r1 asks b  -> r1 at 1
        a1 ready   -> answer x done, load b2, loading r1
        load x a   -> answer x done
        load y a   -> answer y done
        """,
        evicts={"a": "b"},
    ),
    "a withdrawn load is given up when in the way": Story(
        """
        load x a    -> load a1
        r1 asks b   -> r1 at 1
        x withdrawn -> abort a1
        x withdrawn ->
        a1 gone     -> load b2, loading r1
        """,
        evicts=A_FOR_B,
    ),
    "a load that fails says so": Story("""
        load x a   -> load a1
        a1 fails   -> answer x model_load_failed
        load y a   -> answer y model_unavailable
        load z no  -> answer z model_not_found
        """),
    "an unload refuses a load, and goes on when its asker leaves": Story("""
        load x a    -> load a1
        unload y a  -> answer x model_unloaded, stop a1
        unload y a  ->
        y withdrawn ->
        a1 gone     ->
        """),
    "a load waits in the line": Story(
        """
        r1 asks a   -> load a1, loading r1
        load x b    ->
        r2 asks b   -> r2 at 2
        a1 ready    -> grant r1
        x withdrawn ->
        r1 ends     -> stop a1, loading r2
        """,
        evicts=A_FOR_B,
    ),
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_story(story: Story) -> None:
    desk = Desk(spec_of(story.models, slots=story.slots), evicts=story.evicts)

    desk.play(story.told)
