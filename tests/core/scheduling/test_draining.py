"""A box that is being drained: it ends what it has, and takes no more until it is opened again."""

import pytest

from qmsup.core.scheduling.effects import Answer, Refuse
from tests.support.scheduling import Desk, Story, spec_of

A_FOR_B = {"b": "a"}

STORIES = {
    "nothing new is granted, not even where it is ready": Story("""
        r1 asks a    -> load a1, loading r1
        a1 ready     -> grant r1
        close x      -> answer x done
        r2 asks a    -> refuse r2 draining
        r3 asks b    -> refuse r3 draining
        lease y j1 a -> answer y draining
        load z a     -> answer z draining
        r1 accepts   ->
        r1 ends      ->
        """),
    "whoever waits is refused": Story(
        """
        r1 asks a    -> load a1, loading r1
        a1 ready     -> grant r1
        r2 asks b    -> r2 at 1
        r3 asks c    -> load c2, loading r3
        load x c     ->
        close y      -> refuse r3 draining, answer x draining, abort c2, answer y done, \
refuse r2 draining
        c2 gone      ->
        """,
        evicts=A_FOR_B,
    ),
    "what makes room for a load ends without it": Story(
        """
        r1 asks a    -> load a1, loading r1
        a1 ready     -> grant r1
        r1 ends      ->
        r2 asks b    -> stop a1, loading r2
        close x      -> refuse r2 draining, answer x done
        a1 gone      ->
        open y       -> answer y done
        r3 asks b    -> load b2, loading r3
        """,
        evicts=A_FOR_B,
    ),
    "draining twice is draining, and so is opening": Story("""
        open w       -> answer w done
        close x      -> answer x done
        close x      -> answer x done
        close y      -> answer y done
        r1 asks q    -> refuse r1 model_not_found
        unload u a   -> answer u done
        open z       -> answer z done
        r2 asks a    -> load a1, loading r2
        """),
    "a lease goes on, and can be renewed": Story("""
        lease x j1 a 10 -> load a1
        a1 ready        -> answer x done
        close y         -> answer y done
        renew z j1 60   -> answer z done
        release w j1    -> answer w done
        """),
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_story(story: Story) -> None:
    story.play()


def test_the_answer_says_what_is_in_flight() -> None:
    desk = Desk(spec_of("a"))
    texts = []
    for words in ("r1 asks a", "a1 ready", "close x", "open y"):
        desk.say(words)
        texts += [effect.text for effect in desk.effects if isinstance(effect, Answer)]

    assert texts == ["draining, 1 in flight", "taking work"]


def test_who_is_refused_is_told_to_come_again() -> None:
    desk = Desk(spec_of("a"))
    desk.say("close x")
    desk.say("r1 asks a")

    [refuse] = [effect for effect in desk.effects if isinstance(effect, Refuse)]
    assert refuse.refusal.retry_after == 30.0


def test_it_is_recorded_once() -> None:
    desk = Desk(spec_of("a"))
    told = []
    for words in ("close x", "close y", "open z", "open w"):
        desk.say(words)
        told += [record.decision for record in desk.records()]

    assert told == ["box.draining", "box.open"]
