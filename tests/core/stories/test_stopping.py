"""What stops: on request, by itself, at the end; and what is tried again. Stories that can be checked by reading."""

import pytest

from tests.support.scheduling import Story

A_FOR_B = {"b": "a"}

STORIES = {
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
    "the end of an older incarnation does not end the swap": Story("""
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        unload x a -> cut r1 model_unloaded, stop a1
        r2 asks a  -> load a2, loading r2
        a1 gone    -> answer x done
        a1 gone    ->
        a2 ready   -> grant r2
        """),
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
    "draining under steady traffic ends": Story(
        """
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        r2 asks a  -> grant r2
        drain x a  ->
        r3 asks a  -> r3 at 1
        r1 ends    ->
        r4 asks a  -> r4 at 2
        r5 asks b  -> load b2, loading r5
        r2 ends    -> stop a1, load a3, loading r3, loading r4
        a1 gone    -> answer x done
        a3 ready   -> grant r3, grant r4
        """,
        evicts={},
    ),
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
    "what is heard of a child that is gone is not believed": Story("""
        load x a    -> load a1
        a1 ready    -> answer x done
        unload y a  -> stop a1
        a1 gone     -> answer y done
        a1 starting ->
        a1 ready    ->
        a1 fails    ->
        r1 asks a   -> load a2, loading r1
        """),
    "a question that is repeated unloads nothing anew": Story("""
        load x a    -> load a1
        a1 ready    -> answer x done
        unload y a  -> stop a1
        a1 gone     -> answer y done
        load z a    -> load a2
        a2 ready    -> answer z done
        unload y a  -> answer y done
        r1 asks a   -> grant r1
        """),
    "unloading twice stops once": Story("""
        r1 asks a   -> load a1, loading r1
        unload x a  -> refuse r1 model_unloaded, stop a1
        r2 asks a   -> r2 at 1
        unload y a  -> refuse r2 model_unloaded
        a1 fails    -> answer x done, answer y done
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
    story.play()
