from collections.abc import Sequence

import pytest

from qmsup.core.lifecycle.liveness import Pulse, Work
from qmsup.units import Seconds


def looks(pulse: Pulse, works: Sequence[Work]) -> list[str]:
    return [pulse.is_silent(work, Seconds(3.0 * number)) for number, work in enumerate(works)]


def test_a_child_is_calm_until_it_does_not_answer() -> None:
    pulse = Pulse(6)

    was_calm = [pulse.is_calm]
    looks(pulse, [Work(done=1)])
    was_calm.append(pulse.is_calm)
    pulse.beats()

    assert [*was_calm, pulse.is_calm] == [True, False, True]


def test_silence_without_any_work_is_a_hang_at_the_sixth_look() -> None:
    *before, last = looks(Pulse(6), [Work(done=1)] * 6)

    assert before == [""] * 5
    assert last.startswith("the child hangs: it answered nothing for 18 s and used neither CPU nor")


def test_a_stopped_child_is_told_so_at_the_third_look() -> None:
    *before, last = looks(Pulse(6), [Work(done=1, is_stopped=True)] * 3)

    assert before == ["", ""]
    assert "SIGSTOP" in last


@pytest.mark.parametrize(
    "works",
    [
        [Work(done=number) for number in range(20)],
        [
            Work(done=-number) for number in range(20)
        ],  # a process of it ended, and its share with it
        [Work(done=1, is_traced=True)] * 20,
    ],
)
def test_what_moves_or_is_held_by_a_debugger_does_not_hang(works: Sequence[Work]) -> None:
    assert looks(Pulse(6), works) == [""] * 20


def test_work_in_between_starts_the_count_anew() -> None:
    still, moved = [Work(done=1)] * 5, [Work(done=2)] * 6

    assert not any(looks(Pulse(6), [*still, *moved][:-1]))
    assert looks(Pulse(6), [*still, *moved])[-1]


def test_an_answer_in_between_starts_the_count_anew() -> None:
    pulse = Pulse(6)
    looks(pulse, [Work(done=1)] * 5)
    pulse.beats()

    assert looks(pulse, [Work(done=1)] * 5) == [""] * 5


def test_what_cannot_be_asked_hangs_only_when_it_is_stopped() -> None:
    pulse = Pulse(6)

    assert not any(pulse.is_only_watched(Work(done=1), Seconds(at)) for at in range(20))
    stopped = [pulse.is_only_watched(Work(done=1, is_stopped=True), Seconds(at)) for at in range(3)]
    assert stopped[:2] == ["", ""]
    assert "SIGSTOP" in stopped[2]


def test_some_may_be_silent_for_longer() -> None:
    assert [bool(why) for why in looks(Pulse(8), [Work(done=1)] * 8)] == [False] * 7 + [True]
