"""What is loaded, what makes room for it, and which loads are given up. Stories that can be checked by reading."""

import pytest

from qmsup.core.scheduling.effects import TellLoading
from qmsup.ids import ModelId
from qmsup.spec import AllOf, MatrixSpec
from tests.support.scheduling import Desk, Story, spec_of

A, B, C, E = (ModelId(m) for m in "abce")
A_FOR_B = {"b": "a"}
EXCLUSIVE = {"a": "b c", "b": "a c", "c": "a b"}

STORIES = {
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
    "a load that nobody wants goes on until it is in the way": Story(
        """
        r1 asks a  -> load a1, loading r1
        r1 leaves  ->
        r2 asks b  -> r2 at 1, abort a1
        a1 gone    -> load b2, loading r2
        """,
        evicts=A_FOR_B,
    ),
    "only what nobody wants is given up": Story(
        """
        r1 asks a  -> load a1, loading r1
        r2 asks b  -> load b2, loading r2
        r3 asks c  -> r3 at 1
        r2 leaves  -> abort b2
        b2 gone    ->
        a1 ready   -> grant r1
        """,
        evicts={"c": "a b"},
    ),
    "a swap waits for the last of its victims": Story(
        """
        r1 asks a  -> load a1, loading r1
        r2 asks b  -> load b2, loading r2
        a1 ready   -> grant r1
        b2 ready   -> grant r2
        r1 ends    ->
        r2 ends    ->
        r3 asks c  -> stop a1, stop b2, loading r3
        b2 gone    ->
        a1 fails   -> load c3
        """,
        evicts={"c": "a b"},
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
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_story(story: Story) -> None:
    story.play()


def test_each_listener_is_told_once_which_of_its_requests_are_loaded_for() -> None:
    desk = Desk(spec_of("a b"))
    for words in ("r1 asks a", "a1 ready", "r2 asks b", "r3 asks b from=w2", "r4 asks b"):
        desk.say(words)

    desk.say("r1 ends")

    told = [effect for effect in desk.effects if isinstance(effect, TellLoading)]
    assert [(effect.listener, effect.requests) for effect in told] == [
        ("w1", ("r2", "r4")),
        ("w2", ("r3",)),
    ]


def test_a_load_may_turn_a_matrix_to_models_that_nobody_uses() -> None:
    # e does best by keeping b and stopping a; but once c is there, by keeping a and c.
    sets = {"with b": AllOf((B, E)), "with a": AllOf((A, C, E)), "without e": AllOf((A, B, C))}
    costs = {A: 2, B: 3, C: 2}
    Desk(spec_of("a b c e", matrix=MatrixSpec(sets=sets, costs=costs))).play("""
        load x b  -> load b1
        b1 ready  -> answer x done
        r1 asks a -> load a2, loading r1
        a2 ready  -> grant r1
        r2 asks e -> r2 at 1
        r3 asks c -> load c3, loading r3, stop b1, loading r2
        """)
