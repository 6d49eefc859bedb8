"""A process that times the scheduler's decisions, with no socket near: `python -m scripts.benchmark.deciding ...`.

Each history is told several times over, and of each event the quickest time counts: the core does the same each time,
so the rest is what else the machine did. It prints one line of JSON: for each patience and length of the line, in
microseconds of CPU time, the worse of the two policies.
"""

import argparse
import gc
import json
import random
import time
from collections import deque
from dataclasses import asdict, dataclass

from qmsup.core.scheduling.effects import Effect, EnsureReady, Grant, Stop
from qmsup.core.scheduling.events import (
    Event,
    GrantAccepted,
    LeaseReleased,
    Outcome,
    ProcessReady,
    ProcessStopped,
    RequestArrived,
    Woke,
)
from qmsup.core.scheduling.scheduler import Scheduler
from qmsup.ids import LeaseId, ModelId, RequestId, WorkerId
from qmsup.spec import ModelSpec, SchedulerSpec, Spec
from qmsup.units import MiB, Seconds
from scripts.benchmark.figures import Spread, spread

MODELS = 50
LINES = (100, 1_000, 10_000)
PATIENCES = {"default": SchedulerSpec().patience, "past": Seconds(0.0)}
"""By name: nobody, or everybody, is past it."""
BUDGETS = (None, MiB(24_000))
"""Each model stops whatever runs, or five or six of them run side by side."""
_TELLINGS = 3
_WARM = 200  # events not counted: one of them tells everybody's place for the first and last time
_STEP = 0.002  # seconds of the history between two events
_SIZES = range(3_500, 4_500, 20)  # MiB: no two models are alike


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """What is decided about.

    Attributes:
        waiting: so many are always in the line.
    """

    models: int
    waiting: int
    patience: Seconds
    budget: MiB | None

    def spec(self) -> Spec:
        """As a configuration. Telling places is left out: it is done at times, whatever the line does."""
        specs = [
            ModelSpec(id=ModelId(f"m{number}"), argv=("child",), est_vram=MiB(size))
            for number, size in enumerate(_SIZES[: self.models])
        ]
        return Spec(
            models={spec.id: spec for spec in specs},
            vram_budget=self.budget,
            scheduler=SchedulerSpec(
                line_max=self.waiting + 1,
                patience=self.patience,
                position_interval=Seconds(1e9),
            ),
        )


class History:
    """A box whose line is full: whoever is served makes room for one who asks.

    Attributes:
        times_us: what each event took.
    """

    def __init__(self, box: Box) -> None:
        spec = box.spec()
        self.times_us: list[float] = []
        self._scheduler = Scheduler(spec)
        self._models = [*spec.models]
        self._waiting = box.waiting
        self._dice = random.Random(1)
        self._now = 0.0
        self._arrivals = 0
        self._granted: list[RequestId] = []
        self._reports: deque[Event] = deque()
        while self.line < box.waiting:
            self._arrive()

    @property
    def line(self) -> int:
        """How many wait in it."""
        return self._scheduler.state.line.size

    def go_on(self, events: int) -> None:
        """So many events more, or one or two more than that."""
        end = len(self.times_us) + events
        while len(self.times_us) < end:
            self._step()

    def _step(self) -> None:
        is_full = self.line >= self._waiting
        if self._reports and ((is_full and not self._granted) or self._happens(0.3)):
            self._tell(self._reports.popleft())
        elif self._granted and (is_full or self._happens(0.4)):
            self._end_one()
        elif not is_full:
            self._arrive()
        wake = self._scheduler.state.wake
        is_stuck = self.line >= self._waiting and not (self._granted or self._reports)
        if wake is not None and (is_stuck or wake <= self._now):
            self._now = max(self._now, wake)
            self._tell(Woke())

    def _happens(self, chance: float) -> bool:
        return self._dice.random() < chance

    def _arrive(self) -> None:
        self._arrivals += 1
        self._tell(
            RequestArrived(
                request=RequestId(f"r{self._arrivals}"),
                listener=WorkerId(f"w{self._arrivals % 4}"),
                model=self._dice.choice(self._models),
                streaming=True,
                conversation=str(self._arrivals % 100),
            )
        )

    def _end_one(self) -> None:
        request = self._granted.pop(self._dice.randrange(len(self._granted)))
        self._tell(GrantAccepted(request=request))
        outcome = Outcome.TOOL_CALLS if self._happens(0.3) else Outcome.FINISHED
        self._tell(LeaseReleased(lease=LeaseId(request), outcome=outcome))

    def _tell(self, event: Event) -> None:
        self._now += _STEP
        began = time.thread_time_ns()
        effects = self._scheduler.handle(event, Seconds(self._now))
        self.times_us.append((time.thread_time_ns() - began) / 1000)
        for effect in effects:
            self._hear(effect)

    def _hear(self, effect: Effect) -> None:
        match effect:
            case Grant(request=request):
                self._granted.append(request)
            case Stop(model=model, incarnation=incarnation):
                self._reports.appendleft(ProcessStopped(model=model, incarnation=incarnation))
            case EnsureReady(model=model, incarnation=incarnation):
                report = ProcessReady(model=model, incarnation=incarnation, upstream="u", pid=1)
                self._reports.append(report)
            case _:
                pass


def measure(box: Box, events: int) -> Spread:
    """How the times of so many events lie, in microseconds."""
    tellings: list[list[float]] = []
    for _ in range(_TELLINGS):
        history = History(box)
        history.go_on(_WARM)
        history.times_us.clear()
        gc.collect()
        history.go_on(events)
        tellings.append(history.times_us)
    return spread([min(times) for times in zip(*tellings, strict=True)])


def worst(spreads: list[Spread]) -> dict[str, float]:
    """Of each figure the largest."""
    figures = [asdict(each) for each in spreads]
    return {name: max(each[name] for each in figures) for name in ("p50", "p99")}


def main() -> None:
    """`--events N`, of each history."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, required=True)
    events = parser.parse_args().events
    told = {
        name: {
            waiting: worst(
                [
                    measure(
                        Box(models=MODELS, waiting=waiting, patience=patience, budget=budget),
                        events,
                    )
                    for budget in BUDGETS
                ]
            )
            for waiting in LINES
        }
        for name, patience in PATIENCES.items()
    }
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
