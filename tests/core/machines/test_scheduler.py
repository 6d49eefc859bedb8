"""Histories that nobody would think of, found by hypothesis and by dice."""

import os
import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from qmsup.core.scheduling.events import Outcome
from qmsup.ids import ModelId, WorkerId
from tests.support.scheduling_machine import SPECS, SchedulerMachine

HISTORIES = int(os.environ.get("QMSUP_HISTORIES", "12"))
"""Of each configuration, by dice. Thousands of them make a night's work."""

Step = Callable[[SchedulerMachine], None]


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


@pytest.mark.parametrize("configuration", sorted(SPECS))
def test_what_must_hold_holds_in_long_histories(configuration: str) -> None:
    # Hypothesis shrinks well, but it seldom gets far: dice with weights reach states it does not.
    for seed in range(HISTORIES):
        machine = SchedulerMachine()
        machine.begin(name=configuration)
        dice = random.Random(seed)
        steps, weights = zip(*_steps(dice), strict=True)
        try:
            for step in dice.choices(steps, weights, k=dice.choice([30, 60, 150])):
                step(machine)
            machine.teardown()
        except Exception as error:
            error.add_note(f"configuration {configuration!r}, seed {seed}:")
            for event, now, _ in machine.history[-30:]:
                error.add_note(f"  {now:.1f} {event}")
            raise


def _steps(dice: random.Random) -> list[tuple[Step, float]]:
    def pick() -> int:
        return dice.randrange(1000)

    def model() -> ModelId:
        return ModelId(dice.choice("abcd"))

    def worker() -> WorkerId:
        return WorkerId(dice.choice(["w1", "w2"]))

    def likely(chance: float) -> bool:
        return dice.random() < chance

    return [
        (
            lambda m: m.arrive(
                model=model(),
                worker=worker(),
                streaming=likely(0.5),
                timeout=dice.choice([None, None, 4]),
                hold=dice.choice([None, None, 0, 2]),
                patience=dice.choice([None, None, None, 0, 3]),
                conversation=dice.choice(["", "x", "y"]),
            ),
            20,
        ),
        (lambda m: m.ask_again(pick=pick()), 5),
        (lambda m: m.leave(pick=pick()), 4),
        (lambda m: m.accept(pick=pick()), 10),
        (lambda m: m.take_up_the_earlier_offer(pick=pick(), declines=likely(0.5)), 2),
        (lambda m: m.decline(pick=pick()), 3),
        (
            lambda m: m.finish(pick=pick(), served=likely(0.7), outcome=dice.choice(list(Outcome))),
            10,
        ),
        (lambda m: m.spawned(pick=pick()), 3),
        (lambda m: m.ready(pick=pick(), slots=dice.choice([None, 1, 3])), 15),
        (lambda m: m.ended(pick=pick(), failed=likely(0.15)), 10),
        (lambda m: m.old_news(pick=pick(), word=dice.choice(["ready", "stopped", "failed"])), 2),
        (
            lambda m: m.unload(
                models=[model() for _ in range(dice.choice([0, 1, 1, 1, 2]))], drain=likely(0.6)
            ),
            3,
        ),
        (lambda m: m.load(model=model()), 4),
        (lambda m: m.withdraw(pick=pick()), 2),
        (lambda m: m.fall_silent(worker=worker(), is_so=True), 1),
        (lambda m: m.greet_again(worker=worker()), 1),
        (lambda m: m.lose(worker=worker(), is_so=len(m.live) > 1), 0.3),
        (lambda m: m.time_passes(by=dice.choice([0.1, 1.0, 6.0, 40.0])), 5),
        (
            lambda m: m.reload(name=dice.choice(sorted(SPECS)), is_so=not m.world.has_ended),
            0.7,
        ),
        (lambda m: m.take_a_lease(model=model(), ttl=dice.choice([2, 30])), 3),
        (lambda m: m.renew_a_lease(pick=pick(), ttl=dice.choice([2, 30])), 1),
        (lambda m: m.release_a_lease(pick=pick()), 3),
        (lambda m: m.pin(model=model(), is_pinned=likely(0.3), is_so=True), 1),
        (lambda m: m.drain_the_box(is_draining=likely(0.3), is_so=True), 0.5),
        (
            lambda m: m.read_the_card(foreign=dice.choice([0, 0, 3, 12]), has_ceiling=likely(0.5)),
            3,
        ),
        (lambda m: m.lose_sight_of_the_card(is_so=True), 0.7),
        (lambda m: m.give_memory_back(pick=pick(), is_whole=likely(0.7)), 4),
        (lambda m: m.measure(pick=pick(), is_so=True), 0.5),
        (lambda m: m.shut_down(is_so=True), 0.2),
    ]
