"""A child that answers is asked for its slots now and then; one that computes a batch for ever, idly, hangs."""

import pytest

from qmsup.core.lifecycle.progress import (
    ASK_EVERY,
    LOOK_AFTER,
    STALLED_AFTER,
    Effort,
    Progress,
    Step,
)
from qmsup.units import Seconds

IDLE = Effort(cpu=Seconds(5.0), moved=1000, uses_gpu=True)


def asked() -> Progress:
    """At 60 s, and 60 s later looked at."""
    progress = Progress(Seconds(0.0))
    assert progress.step(ASK_EVERY) is Step.ASK
    return progress


def test_it_is_asked_after_a_while_and_again_after_each_answer() -> None:
    progress = Progress(Seconds(0.0))

    assert progress.step(Seconds(59.0)) is None
    assert progress.step(Seconds(60.0)) is Step.ASK
    assert progress.step(Seconds(60.0)) is None
    progress.answered(Seconds(61.0))
    assert progress.step(Seconds(120.0)) is None
    assert progress.step(Seconds(121.0)) is Step.ASK


def test_who_does_not_know_the_question_is_asked_no_more() -> None:
    progress = asked()

    progress.cannot_tell()

    assert progress.due is None
    assert progress.step(Seconds(1e6)) is None


def stalled(after: Effort, lasting: float = STALLED_AFTER) -> str:
    progress, now = asked(), Seconds(ASK_EVERY + LOOK_AFTER)
    assert progress.step(now) is Step.LOOK
    assert progress.looked(IDLE, now) == ""
    assert progress.step(Seconds(now + STALLED_AFTER - 1.0)) is None
    assert progress.step(Seconds(now + STALLED_AFTER)) is Step.LOOK
    return progress.looked(after, Seconds(now + lasting))


def used(cpu: float, moved: int = 0, *, uses_gpu: bool = True, is_held: bool = False) -> Effort:
    return Effort(
        cpu=Seconds(IDLE.cpu + cpu),
        moved=IDLE.moved + moved,
        uses_gpu=uses_gpu,
        is_held=is_held,
    )


@pytest.mark.parametrize("cpu", [0.0, 900.0, 1000.0])
def test_one_that_sleeps_or_spins_in_one_thread_hangs(cpu: float) -> None:
    why = stalled(used(cpu, moved=4096))

    assert why.startswith("the child hangs: it answers, but has computed one batch for 15 minutes")


@pytest.mark.parametrize(
    "effort",
    [
        used(3600.0),
        used(100.0, moved=2_000_000_000),
        used(0.0, uses_gpu=False),
        used(0.0, is_held=True),
    ],
    ids=["four threads compute", "a model is read", "no GPU", "a debugger holds it"],
)
def test_one_that_works_does_not(effort: Effort) -> None:
    assert stalled(effort) == ""


def test_what_worked_then_may_hang_later() -> None:
    progress, now = asked(), Seconds(120.0)
    progress.step(now)
    progress.looked(IDLE, now)
    later = Seconds(now + STALLED_AFTER)
    assert progress.looked(used(3600.0), later) == ""

    assert progress.looked(used(3700.0), Seconds(later + STALLED_AFTER)) != ""


def test_an_answer_forgets_what_was_seen() -> None:
    progress, now = asked(), Seconds(120.0)
    progress.step(now)
    progress.looked(IDLE, now)
    progress.answered(Seconds(130.0))

    assert progress.step(Seconds(190.0)) is Step.ASK
    assert progress.step(Seconds(250.0)) is Step.LOOK
    assert progress.looked(IDLE, Seconds(1030.0)) == ""
