"""Who is served, who waits, and what becomes of an offer. Stories that can be checked by reading."""

import pytest

from tests.support.scheduling import Story

A_FOR_B = {"b": "a"}

STORIES = {
    "a ready model serves at once": Story("""
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        r2 asks a  -> grant r2
        """),
    "a model that is not configured is refused": Story("""
        r1 asks ghost -> refuse r1 model_not_found
        """),
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
    "one that is only counted passes the limit": Story(
        """
        r1 asks a          -> load a1, loading r1
        a1 ready           -> grant r1
        r2 asks a          -> r2 at 1
        r3 asks a tracked  -> grant r3
        r1 ends            ->
        r3 ends            -> grant r2
        """,
        slots=1,
    ),
    "one that is only counted waits for a load": Story(
        """
        r1 asks a          -> load a1, loading r1
        r2 asks a tracked  -> loading r2
        a1 ready           -> grant r1, grant r2
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
    "asked for again, a lapsed offer may still be taken up": Story(
        """
        r1 asks a   -> load a1, loading r1
        a1 ready    -> grant r1
        at 5        ->
        r2 asks a   -> grant r2
        r1 asks a   -> r1 at 1
        r1 accepts  ->
        r2 ends     ->
        r3 asks a   -> r3 at 1
        r1 ends     -> grant r3
        """,
        slots=1,
    ),
    "asked for again, it may be declined": Story(
        """
        r1 asks a   -> load a1, loading r1
        a1 ready    -> grant r1
        at 5        ->
        r2 asks a   -> grant r2
        r1 asks a   -> r1 at 1
        r1 declines ->
        r2 ends     ->
        """,
        slots=1,
    ),
    "asked for again, it may have been used and be over": Story(
        """
        r1 asks a   -> load a1, loading r1
        a1 ready    -> grant r1
        at 5        ->
        r2 asks a   -> grant r2
        r1 asks a   -> r1 at 1
        r1 ends     ->
        r2 ends     ->
        """,
        slots=1,
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
    "a refusal stays the same when it is asked for again": Story("""
        r1 asks a  -> load a1, loading r1
        a1 fails   -> refuse r1 model_load_failed
        r1 asks a  -> refuse r1 model_load_failed
        r2 asks a  -> refuse r2 model_unavailable
        """),
    "a deadline that was met does no harm when it comes": Story("""
        at 10      ->
        r1 asks a timeout=3 -> load a1, loading r1
        a1 ready   -> grant r1
        r1 accepts ->
        at 13      ->
        r1 ends    ->
        """),
    "a deadline counts from the arrival": Story("""
        at 10      ->
        r1 asks a timeout=3 -> load a1, loading r1
        at 12.9    ->
        at 13      -> refuse r1 wait_timeout
        """),
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
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_story(story: Story) -> None:
    story.play()
