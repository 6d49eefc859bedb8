"""What a configuration's times and budget had better be, for one trace: tried out, one after the other."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from qmsup.simulation.figures import Report
from qmsup.simulation.tables import say_seconds
from qmsup.spec import Spec
from qmsup.units import MiB, Seconds, ms_from_seconds

_HOLDS = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0)
_PATIENCES = (0.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0)
_BUDGETS = 6
"""Larger budgets that are tried: the smallest ones at which more models fit, and the one at which all do."""
_SUMS = 4096
_WORTH = 0.99
"""A setting is changed for a hundredth less waiting, and not for less: a trace is only one day."""

Run = Callable[[Spec], Report]


class Knob(StrEnum):
    """What is turned, by its key in a configuration."""

    HOLD = "holdMs"
    PATIENCE = "patienceMs"
    BUDGET = "vramBudgetGB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value of each knob."""

    hold: Seconds
    patience: Seconds
    budget: MiB | None

    def apply(self, spec: Spec) -> Spec:
        """The configuration with these values."""
        scheduler = replace(spec.scheduler, hold=self.hold, patience=self.patience)
        return replace(spec, scheduler=scheduler, vram_budget=self.budget)

    def say(self) -> str:
        """The setting in words."""
        budget = "" if self.budget is None else f", budget {self.budget / 1024:.1f} GB"
        return f"hold {self.hold:g} s, patience {self.patience:g} s{budget}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A setting, and what came of it."""

    setting: Setting
    report: Report

    @property
    def wait(self) -> Seconds:
        """Each model's mean wait, and their mean: a model that is seldom asked for counts as much as a busy one."""
        means = [figures.wait.mean for figures in self.report.models.values()]
        return Seconds(sum(means) / len(means)) if means else Seconds(0.0)

    @property
    def unserved(self) -> int:
        """Requests and rounds that came to nothing."""
        return self.report.total.unserved + self.report.unasked

    def beats(self, other: "Trial") -> bool:
        """Fewer unserved requests; else clearly less waiting; else no more waiting and fewer loads."""
        if self.unserved != other.unserved:
            return self.unserved < other.unserved
        if self.wait < other.wait * _WORTH:
            return True
        return self.wait <= other.wait and self.report.total.loads < other.report.total.loads

    def say(self) -> str:
        """What came of it, in words."""
        total = self.report.total
        return (
            f"mean wait {say_seconds(self.wait)}, longest {say_seconds(total.wait.longest)},"
            f" {total.loads} loads, {self.unserved} unserved"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One key that had better have another value, the changes before it made already."""

    key: Knob
    before: str
    after: str
    gain: Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """The outcome of a search.

    Attributes:
        tries: how many runs it took.
        start, best: as configured, and with every change.
    """

    tries: int
    start: Trial
    best: Trial
    changes: tuple[Change, ...]


def tune(spec: Spec, run: Run, tries: int, on_try: Callable[[int, Trial], None]) -> Tuning:
    """Turn one knob at a time, keep what is best, and go round until nothing helps any more.

    The budget is turned last and upwards alone: what is configured is taken for what the card has, so a larger one
    is a question of money, and is only worth an answer once the times are right.

    Args:
        spec: where it begins.
        run: runs the trace with a configuration.
        tries: runs at most.
        on_try: hears of each run, for a display of progress.
    """
    search = _Search(spec, run, tries, on_try)
    start = search.best
    while search.turn(Knob.HOLD) | search.turn(Knob.PATIENCE):
        pass
    search.turn(Knob.BUDGET)
    return Tuning(
        tries=len(search.seen), start=start, best=search.best, changes=tuple(search.changes())
    )


class _Search:
    def __init__(
        self, spec: Spec, run: Run, tries: int, on_try: Callable[[int, Trial], None]
    ) -> None:
        self._spec = spec
        self._run = run
        self._tries = tries
        self._on_try = on_try
        self.seen: dict[Setting, Trial] = {}
        configured = Setting(
            hold=spec.scheduler.hold,
            patience=spec.scheduler.patience,
            budget=spec.vram_budget,
        )
        self._start = self.best = self._try(configured)

    def turn(self, knob: Knob) -> bool:
        """Try every value of a knob; whether one was better."""
        before = self.best
        for setting in _values(before.setting, knob, self._spec):
            if setting not in self.seen and len(self.seen) >= self._tries:
                break
            trial = self._try(setting)
            if trial.beats(self.best):
                self.best = trial
        return self.best is not before

    def changes(self) -> Iterator[Change]:
        """From where it began to the best, a knob at a time."""
        setting, goal = self._start.setting, self.best.setting
        for knob in Knob:
            after = _turned(setting, knob, goal)
            if after != setting:
                yield Change(
                    key=knob,
                    before=_value(setting, knob),
                    after=_value(after, knob),
                    gain=self._try(after),
                )
            setting = after

    def _try(self, setting: Setting) -> Trial:
        trial = self.seen.get(setting)
        if trial is None:
            trial = Trial(setting=setting, report=self._run(setting.apply(self._spec)))
            self.seen[setting] = trial
            self._on_try(len(self.seen), trial)
        return trial


def _values(setting: Setting, knob: Knob, spec: Spec) -> list[Setting]:
    match knob:
        case Knob.HOLD:
            return [replace(setting, hold=Seconds(hold)) for hold in _HOLDS]
        case Knob.PATIENCE:
            return [replace(setting, patience=Seconds(patience)) for patience in _PATIENCES]
        case Knob.BUDGET:
            return [replace(setting, budget=budget) for budget in _budgets(setting.budget, spec)]


def _budgets(budget: MiB | None, spec: Spec) -> list[MiB]:
    """Sums of what models need that are more than the budget: at any other size no more of them fit."""
    if budget is None:
        return []
    sums = {0}
    for model in spec.models.values():
        if len(sums) < _SUMS:
            sums |= {total + model.est_vram for total in sums}
    everything = sum(model.est_vram for model in spec.models.values())
    larger = sorted(total for total in sums if total > budget)[:_BUDGETS]
    if everything > budget and everything not in larger:
        larger.append(everything)
    return [MiB(total) for total in larger]


def _turned(setting: Setting, knob: Knob, goal: Setting) -> Setting:
    match knob:
        case Knob.HOLD:
            return replace(setting, hold=goal.hold)
        case Knob.PATIENCE:
            return replace(setting, patience=goal.patience)
        case Knob.BUDGET:
            return replace(setting, budget=goal.budget)


def _value(setting: Setting, knob: Knob) -> str:
    match knob:
        case Knob.HOLD:
            return str(ms_from_seconds(setting.hold))
        case Knob.PATIENCE:
            return str(ms_from_seconds(setting.patience))
        case Knob.BUDGET:
            return "none" if setting.budget is None else f"{setting.budget / 1024:g}"
