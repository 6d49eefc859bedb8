"""Leases of jobs: taken, renewed, released, expired; what they hold back, and what they do not."""

import pytest

from qmsup.core.scheduling.effects import Answer
from qmsup.errors import Code
from qmsup.ids import LeaseId
from qmsup.spec import HoldOn, SchedulerSpec
from qmsup.units import Seconds
from tests.support.scheduling import Desk, Story, spec_of

A_FOR_B = {"b": "a"}

STORIES = {
    "a job loads its model, and keeps it from being evicted": Story(
        """
        lease x j1 a -> load a1
        a1 ready     -> answer x done
        r1 asks b    -> r1 at 1
        release y j1 -> answer y done, stop a1, loading r1
        """,
        evicts=A_FOR_B,
    ),
    "a job joins the load that a request began": Story("""
        r1 asks a    -> load a1, loading r1
        lease x j1 a ->
        a1 ready     -> grant r1, answer x done
        """),
    "a load that only a job waits for is given up with it": Story(
        """
        lease x j1 a -> load a1
        r1 asks b    -> r1 at 1
        x withdrawn  -> abort a1
        """,
        evicts=A_FOR_B,
    ),
    "a job is told when its model cannot be loaded": Story("""
        lease x j1 a -> load a1
        a1 fails     -> answer x model_load_failed
        lease y j1 q -> answer y model_not_found
        """),
    "a job waits in the line": Story(
        """
        r1 asks b    -> load b1, loading r1
        b1 ready     -> grant r1
        lease x j1 a ->
        r1 ends      -> stop b1
        b1 gone      -> load a2
        a2 ready     -> answer x done
        """,
        evicts={"a": "b"},
    ),
    "a job comes on top of the limit, and counts for it": Story(
        """
        r1 asks a    -> load a1, loading r1
        a1 ready     -> grant r1
        lease x j1 a -> answer x done
        r2 asks a    -> r2 at 1
        r1 ends      ->
        release y j1 -> answer y done, grant r2
        """,
        slots=1,
    ),
    "a lease taken twice is one, and released three times it is over": Story(
        """
        lease x j1 a -> load a1
        a1 ready     -> answer x done
        lease x j1 a -> answer x done
        lease y j1 a -> answer y done
        r1 asks b    -> r1 at 1
        release u j1 -> answer u done, stop a1, loading r1
        release u j1 -> answer u done
        release v j1 -> answer v done
        release w j7 -> answer w done
        """,
        evicts=A_FOR_B,
    ),
    "two leases are two": Story(
        """
        lease x j1 a -> load a1
        lease y j2 a ->
        a1 ready     -> answer x done, answer y done
        r1 asks b    -> r1 at 1
        release u j1 -> answer u done
        release v j2 -> answer v done, stop a1, loading r1
        """,
        evicts=A_FOR_B,
    ),
    "a lease that is not renewed expires": Story(
        """
        lease x j1 a 10 -> load a1
        at 3            ->
        a1 ready        -> answer x done
        r1 asks b       -> r1 at 1
        at 12           ->
        at 13           -> stop a1, loading r1
        renew y j1 10   -> answer y not_found
        release z j1    -> answer z done
        """,
        evicts=A_FOR_B,
    ),
    "a renewed lease lives on from then": Story(
        """
        lease x j1 a 10 -> load a1
        a1 ready        -> answer x done
        at 9            ->
        renew y j1 5    -> answer y done
        renew y j1 5    -> answer y done
        r1 asks b       -> r1 at 1
        at 10           ->
        at 14           -> stop a1, loading r1
        """,
        evicts=A_FOR_B,
    ),
    "a question that is repeated renews nothing": Story(
        """
        lease x j1 a 10 -> load a1
        a1 ready        -> answer x done
        at 9            ->
        renew y j1 5    -> answer y done
        at 13           ->
        renew y j1 5    -> answer y done
        r1 asks b       -> r1 at 1
        at 14           -> stop a1, loading r1
        """,
        evicts=A_FOR_B,
    ),
    "nor does it release what was taken after it": Story(
        """
        lease x j1 a    -> load a1
        a1 ready        -> answer x done
        release y j1    -> answer y done
        lease z j1 a    -> answer z done
        release y j1    -> answer y done
        r1 asks b       -> r1 at 1
        """,
        evicts=A_FOR_B,
    ),
    "no listener's death ends a job": Story(
        """
        r1 asks a    -> load a1, loading r1
        a1 ready     -> grant r1
        lease x j1 a -> answer x done
        r2 asks b from=w2 -> r2 at 1
        w1 lost      ->
        release y j1 -> answer y done, stop a1, loading r2
        """,
        evicts=A_FOR_B,
    ),
    "a job ends with its child": Story("""
        lease x j1 a -> load a1
        a1 ready     -> answer x done
        a1 fails     ->
        renew y j1 5 -> answer y not_found
        r1 asks a    -> refuse r1 model_unavailable
        """),
    "the end of an older child leaves the job of a younger one alone": Story("""
        lease x j1 a -> load a1
        a1 ready     -> answer x done
        unload u a   -> stop a1
        lease y j2 a -> load a2
        a2 ready     -> answer y done
        a1 gone      -> answer u done
        renew z j2 9 -> answer z done
        """),
    "an unload ends jobs, a drain waits for them": Story("""
        lease x j1 a -> load a1
        a1 ready     -> answer x done
        drain u a    ->
        lease y j2 a ->
        unload v a   -> answer y model_unloaded, stop a1
        renew z j1 9 -> answer z not_found
        a1 gone      -> answer u done, answer v done
        """),
    "an unload that waits for a request lets its job go on": Story("""
        r1 asks a    -> load a1, loading r1
        a1 ready     -> grant r1
        drain u a    ->
        lease x j1 a -> answer x done
        r1 ends      ->
        lease y j2 a ->
        release z j1 -> stop a1, answer z done, load a2
        a1 gone      -> answer u done
        a2 ready     -> answer y done
        """),
    "a lease that is waited for can be released": Story(
        """
        lease x j1 a -> load a1
        lease y j1 a -> answer y bad_request
        lease x j1 a ->
        release z j1 -> answer x not_found, answer z done
        r1 asks b    -> r1 at 1, abort a1
        """,
        evicts=A_FOR_B,
    ),
    "loads that wait are no jobs": Story(
        """
        r1 asks a    -> load a1, loading r1
        load x b     ->
        release y j9 -> answer y done
        lease z j9 b ->
        """,
        evicts=A_FOR_B,
    ),
    "a request's lease is no job's": Story("""
        r1 asks a    -> load a1, loading r1
        a1 ready     -> grant r1
        lease x r1 a -> answer x bad_request
        renew y r1 9 -> answer y not_found
        release z r1 -> answer z done
        load l a     -> answer l done
        r2 asks b    -> r2 at 1
        """),
    "a lease must live for some time": Story("""
        lease x j1 a 0 -> answer x bad_request
        lease x j1 a   -> answer x bad_request
        lease y j1 a   -> load a1
        a1 ready       -> answer y done
        renew z j1 -1  -> answer z bad_request
        renew w j1 0   -> answer w bad_request
        renew v j1 0.5 -> answer v done
        """),
    "at the end jobs have the time that requests have": Story("""
        lease x j1 a -> load a1
        a1 ready     -> answer x done
        shutdown     ->
        lease y j2 a -> answer y shutting_down
        at 5         -> stop a1
        a1 gone      -> end
        """),
    "who releases a job has been served": Story("""
        lease x j1 a -> load a1
        a1 ready     -> answer x done
        release y j1 -> answer y done
        a1 fails     ->
        r1 asks a    -> load a2, loading r1
        """),
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_story(story: Story) -> None:
    story.play()


def test_a_render_goes_on_when_its_request_has_ended_and_its_worker_has_died() -> None:
    # Loading llm would stop nothing, but a render's peak lies above what it seems to take.
    desk = Desk(spec_of("vid llm", slots=1, renders="vid"), evicts={})

    desk.play("""
        r1 asks vid from=w2 -> load vid1, loading r1
        vid1 ready     -> grant r1
        lease x j1 vid -> answer x done
        r1 accepts     ->
        r1 ends        ->
        r2 asks llm    -> r2 at 1
        w2 lost        ->
        r3 asks vid    -> r3 at 2
        release y j1   -> answer y done, load llm2, loading r2, grant r3
        """)


def test_the_hold_of_a_job_starts_at_its_end() -> None:
    always = SchedulerSpec(hold=Seconds(10.0), hold_on=HoldOn.ALWAYS)
    Desk(spec_of("a b", scheduler=always), evicts=A_FOR_B).play("""
        lease x j1 a 60 -> load a1
        a1 ready        -> answer x done
        r1 asks b       -> r1 at 1
        at 30           ->
        release y j1    -> answer y done
        at 39.9         ->
        at 40           -> stop a1, loading r1
        """)


def test_a_job_that_took_no_tools_holds_nothing_unless_that_is_wanted() -> None:
    usual = SchedulerSpec()
    Desk(spec_of("a b", scheduler=usual), evicts=A_FOR_B).play("""
        lease x j1 a    -> load a1
        a1 ready        -> answer x done
        r1 asks b       -> r1 at 1
        release y j1    -> answer y done, stop a1, loading r1
        """)


def test_a_conversation_s_hold_counts_from_its_own_end_whatever_a_job_does_meanwhile() -> None:
    Desk(spec_of("a b", scheduler=SchedulerSpec()), evicts=A_FOR_B).play("""
        r1 asks a of=x     -> load a1, loading r1
        a1 ready           -> grant r1
        lease x j1 a       -> answer x done
        r2 asks b          -> r2 at 1
        r1 ends tool_calls ->
        at 4               ->
        release y j1       -> answer y done
        at 10              -> stop a1, loading r2
        """)


def test_the_answer_is_the_lease_s_id() -> None:
    desk = Desk(spec_of("a"))
    desk.say("lease x j1 a")
    desk.say("a1 ready")

    assert [effect.text for effect in desk.effects if isinstance(effect, Answer)] == ["j1"]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("release y j1", "it was released"),
        ("unload y a", "model 'a' was unloaded on request"),
        ("a1 fails", "its model stopped"),
        ("at 60", "it was not renewed in time"),
    ],
)
def test_who_renews_a_lease_that_is_over_is_told_why(said: str, why: str) -> None:
    desk = Desk(spec_of("a"))
    for words in ("lease x j1 a", "a1 ready", said, "woke", "renew z j1 10"):
        desk.say(words)

    [answer] = [effect for effect in desk.effects if isinstance(effect, Answer)]
    assert answer.refusal is not None
    assert (answer.refusal.code, answer.refusal.message) == (
        Code.NOT_FOUND,
        f"cannot renew: lease 'j1' is over: {why}",
    )


def test_what_was_never_a_lease_is_said_to_be_unknown() -> None:
    desk = Desk(spec_of("a"))
    desk.say("release x j9")

    [answer] = [effect for effect in desk.effects if isinstance(effect, Answer)]
    assert answer.text == "nothing to release: no lease 'j9' is known"


def test_the_beginning_and_the_end_of_a_job_are_recorded() -> None:
    desk = Desk(spec_of("a"))
    told = []
    for words in ("lease x j1 a", "a1 ready", "release y j1"):
        desk.say(words)
        told += [(r.decision, r.lease) for r in desk.records() if r.lease is not None]

    assert told == [("job.held", LeaseId("j1")), ("job.ended", LeaseId("j1"))]


@pytest.mark.parametrize("patience", [300.0, 0.0], ids=["patient", "past its patience"])
def test_the_job_of_a_request_that_is_in_flight_after_all_has_its_lease(patience: float) -> None:
    desk = Desk(spec_of("a b", scheduler=SchedulerSpec(patience=Seconds(patience))))
    desk.play("""
        lease x j1 a -> load a1
        a1 ready     -> answer x done
        r1 asks a    -> grant r1
        at 6         ->
        drain u a    ->
        lease y j2 a ->
        r2 asks b    -> r2 at 2
        r1 accepts   -> answer y done
        r1 ends      ->
        release z j1 -> answer z done
        release v j2 -> stop a1, answer v done, loading r2
        """)
