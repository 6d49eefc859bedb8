"""Histories that nobody would think of, found by hypothesis and by dice."""

import os
import random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from qmsup.ids import ModelId
from tests.support.scheduling_dice import as_code, play, shortest, throw
from tests.support.scheduling_machine import SchedulerMachine
from tests.support.scheduling_specs import SPECS

HISTORIES = int(os.environ.get("QMSUP_HISTORIES", "12"))
"""Of each configuration, by dice. Thousands of them make a night's work."""


def test_what_must_hold_holds() -> None:
    run_state_machine_as_test(
        SchedulerMachine,
        settings=settings(
            max_examples=50,
            stateful_step_count=50,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


def test_what_is_released_after_the_box_was_handed_over_is_the_next_schedulers() -> None:
    machine = SchedulerMachine()
    machine.begin(name="kept")
    machine.take_a_lease(model=ModelId("a"), ttl=30)
    machine.ready(pick=0, slots=1)
    machine.shut_down(is_so=True)
    machine.release_a_lease(pick=0)
    machine.teardown()


@pytest.mark.parametrize("configuration", sorted(SPECS))
def test_what_must_hold_holds_in_long_histories(configuration: str) -> None:
    for seed in range(HISTORIES):
        machine = SchedulerMachine()
        turns = throw(random.Random(seed))
        try:
            play(machine, configuration, turns)
        except Exception as error:
            error.add_note(
                f"configuration {configuration!r}, seed {seed}; the end of what happened:"
            )
            for event, now, _ in machine.history[-30:]:
                error.add_note(f"  {now:.1f} {event}")
            error.add_note(
                "as short as it can be:\n" + as_code(configuration, shortest(configuration, turns))
            )
            raise
