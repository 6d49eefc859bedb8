"""Refusals say what is wrong and when to try again; the line has bounds."""

from dataclasses import replace

from qmsup.core.scheduling.effects import Refuse
from qmsup.core.scheduling.events import ConfigApplied
from qmsup.core.scheduling.state import Recent
from qmsup.errors import Refusal
from qmsup.ids import ModelId
from qmsup.spec import SchedulerSpec, Spec
from tests.support.scheduling import Desk, spec_of


def refusal(desk: Desk) -> Refusal:
    return next(effect.refusal for effect in desk.effects if isinstance(effect, Refuse))


def bounded(spec: Spec, **queue_max: int) -> Spec:
    return replace(
        spec,
        models={
            name: replace(model, queue_max=queue_max.get(name))
            for name, model in spec.models.items()
        },
    )


def test_an_unknown_model_gets_near_names() -> None:
    desk = Desk(spec_of("qwen-small qwen-large gemma"))

    desk.say("r1 asks qwen-smal")
    assert refusal(desk).message == (
        "there is no model 'qwen-smal'; did you mean 'qwen-small', 'qwen-large'?"
    )
    desk.say("r2 asks zzz")
    assert refusal(desk).message == "there is no model 'zzz'"


def test_a_model_that_is_no_longer_configured_is_not_among_them() -> None:
    desk = Desk(spec_of("chat-a chat-b"))
    desk.play("""
        r1 asks chat-a -> load chat-a1, loading r1
        chat-a1 ready  -> grant r1
        """)
    desk.tell(ConfigApplied(spec=spec_of("chat-b")))

    desk.say("r2 asks chat-a")

    assert refusal(desk).message == "there is no model 'chat-a'; did you mean 'chat-b'?"


def test_no_more_than_three_near_names_are_told() -> None:
    desk = Desk(spec_of("chat-a chat-b chat-c chat-d"))

    desk.say("r1 asks chat-e")

    assert refusal(desk).message.count("'chat-") == 4, "the one asked for, and three"


def test_a_failed_load_tells_the_child_s_last_lines() -> None:
    desk = Desk(spec_of("a"))
    desk.say("r1 asks a")

    desk.say("a1 fails out of memory")

    assert refusal(desk).message == ("model 'a' could not be loaded: exited with 1\nout of memory")
    assert refusal(desk).retry_after == 1.0


def test_a_failed_load_without_a_log_ends_with_its_reason() -> None:
    desk = Desk(spec_of("a"))
    desk.say("r1 asks a")

    desk.say("a1 fails")

    assert refusal(desk).message == "model 'a' could not be loaded: exited with 1"


def test_a_model_in_its_back_off_tells_the_last_error_and_when_to_retry() -> None:
    desk = Desk(spec_of("a"))
    desk.say("r1 asks a")
    desk.say("a1 fails")
    assert desk.wake == 1.0
    desk.now = 0.25

    desk.say("r2 asks a")

    assert refusal(desk).retry_after == 0.75
    assert "exited with 1" in refusal(desk).message


def test_a_deadline_tells_how_long_it_was() -> None:
    desk = Desk(spec_of("a"))
    desk.now = 10.0
    desk.say("r1 asks a timeout=1.5")
    assert desk.wake == 11.5

    desk.play("at 11.5 -> refuse r1 wait_timeout")

    assert refusal(desk).message == "no turn on model 'a' within 1.5 s: it is still loading"


def test_a_deadline_tells_what_was_waited_for_and_no_other_models_name() -> None:
    desk = Desk(spec_of("a b", slots=1))
    desk.play("""
        r1 asks a            -> load a1, loading r1
        a1 ready             -> grant r1
        r2 asks a timeout=1  -> r2 at 1
        r3 asks b timeout=2  -> r3 at 2
        """)

    desk.play("at 1 -> refuse r2 wait_timeout")
    assert refusal(desk).message == (
        "no turn on model 'a' within 1.0 s: all places of the model are in use"
    )
    desk.play("at 2 -> refuse r3 wait_timeout")
    assert refusal(desk).message == (
        "no turn on model 'b' within 2.0 s: a model that would have to stop has requests in flight"
    )


def test_who_gives_up_in_the_moment_in_which_a_place_gets_free_was_next() -> None:
    desk = Desk(spec_of("a", slots=1))
    desk.play("""
        lease x j a 1        -> load a1
        a1 ready             -> answer x done
        r1 asks a timeout=1  -> r1 at 1
        """)

    desk.play("at 1 -> refuse r1 wait_timeout")

    assert refusal(desk).message == "no turn on model 'a' within 1.0 s: it was next"


def test_the_whole_line_is_bounded() -> None:
    desk = Desk(spec_of("a b c", scheduler=SchedulerSpec(line_max=2)))
    desk.play("""
        r1 asks a -> load a1, loading r1
        r2 asks b -> r2 at 1
        r3 asks c -> r3 at 2
        r4 asks b -> refuse r4 line_full
        r5 asks a -> loading r5
        load x b  -> answer x line_full
        """)


def test_the_line_of_one_model_is_bounded() -> None:
    Desk(bounded(spec_of("a b"), b=1)).play("""
        r1 asks a -> load a1, loading r1
        r2 asks b -> r2 at 1
        r3 asks b -> refuse r3 queue_full
        """)


def test_no_bound_turns_away_who_is_only_counted() -> None:
    spec = spec_of("a b", slots=1, scheduler=SchedulerSpec(line_max=1))
    Desk(spec).play("""
        r1 asks a                    -> load a1, loading r1
        r2 asks b                    -> r2 at 1
        r3 asks b                    -> refuse r3 line_full
        r4 asks b tracked streaming  -> r4 at 2
        a1 ready                     -> grant r1
        """)


def test_when_to_retry_comes_from_the_load_times_seen() -> None:
    desk = Desk(bounded(spec_of("a b c"), b=1, c=0))
    desk.play("""
        r1 asks a -> load a1, loading r1
        r2 asks b -> r2 at 1
        r3 asks b -> refuse r3 queue_full
        """)
    assert refusal(desk).retry_after == 5.0, "nothing was seen of b yet"

    desk.now = 3.0
    desk.play("""
        a1 ready  -> grant r1
        r1 ends   -> stop a1, loading r2
        a1 gone   -> load b2
        """)
    desk.now = 20.0
    desk.play("""
        b2 ready  -> grant r2
        r4 asks c -> refuse r4 queue_full
        """)
    assert refusal(desk).retry_after == 5.0, "nothing was seen of c yet"
    desk.play("""
        r5 asks a -> r5 at 1
        r6 asks c -> refuse r6 queue_full
        """)
    assert refusal(desk).retry_after == 8.0, "a is loaded before it, and took three"


def test_a_child_may_know_better_how_many_it_takes() -> None:
    spec = spec_of("a b", slots=1)
    guessed = replace(spec.models[ModelId("a")], slots_from_child=True)
    desk = Desk(replace(spec, models={**spec.models, ModelId("a"): guessed}), evicts={})

    desk.play("""
        r1 asks a   -> load a1, loading r1
        r2 asks a   -> loading r2
        r3 asks a   -> loading r3
        a1 ready 2  -> grant r1, grant r2
        r4 asks b   -> load b2, loading r4
        r5 asks b   -> loading r5
        b2 ready 2  -> grant r4
        """)


def test_only_the_last_few_answers_are_remembered() -> None:
    recent: Recent[int, str] = Recent()

    for number in range(5000):
        recent.keep(number, "x")
    recent.keep(4999, "y")

    assert len(recent) == 4096
    assert (recent.get(0), recent.get(4999)) == (None, "y")


def test_a_full_line_says_how_many_wait_and_of_none_why_none_may() -> None:
    desk = Desk(bounded(spec_of("a b", slots=1), a=1, b=0))
    desk.play("""
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        r2 asks a -> r2 at 1
        r3 asks a -> refuse r3 queue_full
        """)
    assert refusal(desk).message == "1 request waits already for model 'a'"

    desk.play("r4 asks b -> refuse r4 queue_full")
    assert refusal(desk).message == (
        "model 'b' cannot be had at once, and its queueMax of 0 lets nobody wait"
    )
