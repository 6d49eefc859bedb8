"""The search for better settings, on made-up runs whose best setting is known."""

from dataclasses import replace

import pytest

from qmsup.ids import ModelId
from qmsup.simulation.figures import Figures, Report, Waits
from qmsup.simulation.tuning import Trial, Tuning, tune
from qmsup.spec import SchedulerSpec, Spec
from qmsup.units import MiB, Seconds
from tests.support.scheduling import spec_of

SPEC = spec_of(
    "a b", sizes={"a": 6, "b": 6}, vram_budget=MiB(8), scheduler=SchedulerSpec(hold=Seconds(10.0))
)


def report(wait: float, *, loads: int = 2, refused: int = 0, unasked: int = 0) -> Report:
    seconds = Seconds(wait)
    figures = Figures(
        requests=1,
        served={},
        refused={"line_full": refused} if refused else {},
        left=0,
        cut={},
        unanswered=0,
        loads=loads,
        failed_loads=0,
        aborted_loads=0,
        wait=Waits(mean=seconds, p50=seconds, p95=seconds, longest=seconds),
        lost=Seconds(0.0),
        starved=0,
        busy=1.0,
    )
    return Report(span=Seconds(1.0), unasked=unasked, models={ModelId("a"): figures}, total=figures)


class Runs:
    """Gives each configuration the mean wait that `waits` says, and counts."""

    def __init__(self) -> None:
        self.specs: list[Spec] = []
        self.heard: list[int] = []

    def waits(self, spec: Spec) -> float:
        scheduler = spec.scheduler
        distance = abs(scheduler.hold - 2.0) + abs(scheduler.patience - 15.0)
        return 1.0 + distance + (0.0 if (spec.vram_budget or 0) >= 12 else 50.0)

    def run(self, spec: Spec) -> Report:
        self.specs.append(spec)
        return report(self.waits(spec))

    def tune(self, spec: Spec = SPEC, tries: int = 100) -> Tuning:
        return tune(spec, self.run, tries, self._hear)

    def _hear(self, number: int, trial: Trial) -> None:
        self.heard.append(number)


def test_it_finds_what_is_best_and_says_what_to_change() -> None:
    tuning = Runs().tune()

    changes = [(change.key, change.before, change.after) for change in tuning.changes]
    assert changes == [
        ("holdMs", "10000", "2000"),
        ("patienceMs", "300000", "15000"),
        ("vramBudgetGB", f"{8 / 1024:g}", f"{12 / 1024:g}"),
    ]
    assert tuning.best.wait == 1.0
    assert tuning.changes[-1].gain.wait == 1.0


def test_no_setting_is_run_twice_and_each_run_is_told() -> None:
    runs = Runs()

    tuning = runs.tune()

    settings = {(s.scheduler.hold, s.scheduler.patience, s.vram_budget) for s in runs.specs}
    assert len(settings) == len(runs.specs) == tuning.tries
    assert runs.heard == list(range(1, tuning.tries + 1))


@pytest.mark.parametrize("tries", [1, 5])
def test_it_takes_no_more_runs_than_allowed(tries: int) -> None:
    runs = Runs()

    runs.tune(tries=tries)

    # What a change alone gains may have to be run once more, to be told.
    assert tries <= len(runs.specs) <= tries + 2


def test_without_a_budget_none_is_proposed() -> None:
    tuning = Runs().tune(replace(SPEC, vram_budget=None))

    assert {change.key for change in tuning.changes} == {"holdMs", "patienceMs"}


def test_what_makes_no_difference_stays_as_it_is() -> None:
    tuning = tune(SPEC, lambda spec: report(3.0), 100, lambda number, trial: None)

    assert tuning.changes == ()
    assert tuning.best is tuning.start


@pytest.mark.parametrize(
    ("one", "other", "is_better"),
    [
        (report(9.0), report(1.0, refused=1), True),
        (report(9.0), report(1.0, unasked=3), True),
        (report(0.98), report(1.0), True),
        (report(0.995), report(1.0), False),
        (report(1.0, loads=1), report(1.0, loads=2), True),
        (report(1.0), report(1.0), False),
    ],
)
def test_served_requests_count_before_waits_and_waits_before_loads(
    one: Report, other: Report, is_better: bool
) -> None:
    setting = Runs().tune().start.setting

    assert Trial(setting=setting, report=one).beats(Trial(setting=setting, report=other)) is (
        is_better
    )
