import random
from dataclasses import replace

import pytest
from typing_extensions import override

from qmsup.ids import ModelId
from tests.support.scheduling_dice import Turn, as_code, play, shortest, throw
from tests.support.scheduling_machine import SchedulerMachine


class Superstitious(SchedulerMachine):
    """Cannot bear to unload b after a lease of d."""

    is_doomed = False

    @override
    def take_a_lease(self, model: ModelId, ttl: int) -> None:
        self.is_doomed |= model == "d"

    @override
    def unload(self, models: list[ModelId], drain: bool) -> None:
        assert not (self.is_doomed and "b" in models)


def test_the_same_dice_throw_the_same_history() -> None:
    assert throw(random.Random(7)) == throw(random.Random(7))
    assert throw(random.Random(7)) != throw(random.Random(8))
    assert len(throw(random.Random(7), [5])) == 5


def test_a_history_that_fails_is_cut_down_to_what_it_fails_by() -> None:
    turns = next(h for h in map(history, range(1000)) if fails(h))

    left = shortest("exclusive", turns, Superstitious)

    assert [turn.rule for turn in left] == ["take_a_lease", "unload"]
    assert fails(left)


def test_it_is_told_as_a_test() -> None:
    arrival = Turn(rule="old_news", values={"pick": 3, "word": "ready"})

    assert as_code("budget", [arrival]) == (
        "machine = SchedulerMachine()\n"
        "machine.begin(name='budget')\n"
        "machine.old_news(pick=3, word='ready')\n"
        "machine.teardown()"
    )


def test_the_machine_that_a_history_is_played_on_is_the_real_one() -> None:
    machine = SchedulerMachine()

    play(machine, "budget", history(1))

    assert len(machine.history) > 30


def test_a_history_that_does_not_fail_cannot_be_cut_down() -> None:
    with pytest.raises(AssertionError, match="does not fail"):
        shortest(
            "budget", [replace(turn, rule="spawned", values={"pick": 1}) for turn in history(1)]
        )


def history(seed: int) -> list[Turn]:
    return throw(random.Random(seed), [60])


def fails(turns: list[Turn]) -> bool:
    try:
        play(Superstitious(), "exclusive", turns)
    except AssertionError:
        return True
    return False
