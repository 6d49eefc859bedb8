"""Histories for what decides: every state machine of the tests, with other seeds, and longer than a test has time."""

import random
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from pathlib import Path

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from scripts.soaking.found import FoundError
from scripts.soaking.tally import Tally
from tests.support.scheduling_dice import as_code, play, shortest, throw
from tests.support.scheduling_machine import SchedulerMachine
from tests.support.scheduling_specs import SPECS

_ROOT = Path(__file__).resolve().parents[2]
_LENGTHS = (60, 150, 400)
_THROWS = 5
"""Histories for each configuration in a round: dice get farther in their time than anything else here."""
DICE = "dice"
_SETTINGS = settings(
    max_examples=25,
    stateful_step_count=100,
    deadline=None,
    database=None,  # what was found before is a story by now, and a seed must mean the same each time
    derandomize=False,
    report_multiple_bugs=False,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where histories come from; `run` plays a few seconds of them for a seed, and raises FoundError."""

    name: str
    run: Callable[[int, Tally], None]


def sources() -> list[Source]:
    """The dice, and each machine that there is in the tests of the core."""
    return [Source(name=DICE, run=_roll), *(_source_of(machine) for machine in _machines())]


def soak(chosen: list[Source], first_seed: int, is_over: Callable[[], bool], tally: Tally) -> None:
    """Go round, with the next seed each time; each source once at the least.

    Raises:
        FoundError: at the first thing that is found.
    """
    number = first_seed
    while True:
        for source in chosen:
            source.run(number, tally)
            if is_over() and number > first_seed:
                return
        if is_over():
            return
        number += 1


def _roll(number: int, tally: Tally) -> None:
    for configuration, throw_number in product(sorted(SPECS), range(_THROWS)):
        turns = throw(random.Random(f"{number}/{configuration}/{throw_number}"), _LENGTHS)
        try:
            play(SchedulerMachine(), configuration, turns)
        except Exception as error:
            left = shortest(configuration, turns)
            raise FoundError(
                f"{_words(error)} (dice {number}, configuration {configuration!r}:"
                f" {len(turns)} turns, {len(left)} are enough)",
                story=f"{_where(error)}\n\n{as_code(configuration, left)}",
                again=_again(DICE, number),
            ) from error
        tally.add("histories")
        tally.add("steps", len(turns))


def _source_of(machine: type[RuleBasedStateMachine]) -> Source:
    def run(number: int, tally: Tally) -> None:
        try:
            run_state_machine_as_test(seed(number)(_counted(machine, tally)), settings=_SETTINGS)
        except Exception as error:
            raise FoundError(
                f"{_words(error)} ({machine.__name__}, seed {number})",
                story=f"{_where(error)}\n\n" + "\n".join(getattr(error, "__notes__", [])),
                again=_again(machine.__name__, number),
            ) from error

    return Source(name=machine.__name__, run=run)


def _counted(machine: type[RuleBasedStateMachine], tally: Tally) -> type[RuleBasedStateMachine]:
    def check_invariants(
        self: RuleBasedStateMachine,
        given: settings,
        output: Callable[[str], None],
        runtimes: dict[str, float],
    ) -> None:
        tally.add("steps")  # called after each
        machine.check_invariants(self, given, output, runtimes)

    def teardown(self: RuleBasedStateMachine) -> None:
        tally.add("histories")
        machine.teardown(self)

    body = {"check_invariants": check_invariants, "teardown": teardown}
    return type(machine.__name__, (machine,), body)


def _machines() -> list[type[RuleBasedStateMachine]]:
    found: list[type[RuleBasedStateMachine]] = [SchedulerMachine]
    for file in sorted((_ROOT / "tests" / "core").rglob("test_*.py")):
        if "(RuleBasedStateMachine)" in file.read_text():
            module = import_module(".".join(file.relative_to(_ROOT).with_suffix("").parts))
            found += [
                thing
                for thing in vars(module).values()
                if isinstance(thing, type)
                and issubclass(thing, RuleBasedStateMachine)
                and thing.__module__ == module.__name__
            ]
    return found


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _where(error: BaseException) -> str:
    return "".join(traceback.format_tb(error.__traceback__, limit=-3)).rstrip()


def _again(name: str, number: int) -> str:
    return f"scripts/soak --minutes 0 --seed {number} --only {name}"
