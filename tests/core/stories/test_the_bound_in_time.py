"""The bound on waiting as people feel it: in seconds, on a box that others keep busy without a pause.

The models take any number at once: at a limit, everybody waits for those who came before as well.
"""

import random

import pytest

from qmsup.core.scheduling.events import Outcome
from qmsup.ids import ModelId
from qmsup.simulation.books import Books, Request
from qmsup.simulation.children import Pace
from qmsup.simulation.traces import Arrivals, Ask
from qmsup.simulation.world import simulate
from qmsup.spec import SchedulerSpec, Spec
from qmsup.units import MiB, Seconds
from tests.support.scheduling import group, spec_of

PATIENCE, LONGEST, LOAD, STOP = 4.0, 3.0, 1.0, 0.5
SCHEDULER = SchedulerSpec(patience=Seconds(PATIENCE), hold=Seconds(2.0), line_max=10_000)

BOXES: dict[str, Spec] = {
    "one model at a time": spec_of("a b c d", slots=99, scheduler=SCHEDULER),
    "a budget for two or three": spec_of(
        "a b c d",
        slots=99,
        sizes={"a": 6, "b": 5, "c": 4, "d": 10},
        vram_budget=MiB(12),
        scheduler=SCHEDULER,
    ),
    "a budget for nearly all": spec_of(
        "a b c d",
        slots=99,
        sizes={"a": 6, "b": 5, "c": 4, "d": 10},
        vram_budget=MiB(20),
        scheduler=SCHEDULER,
    ),
    "groups": spec_of(
        "a b c d",
        slots=99,
        groups=(group("g", "a b", exclusive=False), group("h", "c d", exclusive=True)),
        scheduler=SCHEDULER,
    ),
    "renders beside": spec_of(
        "a b c d",
        slots=99,
        renders="c d",
        sizes={"a": 6, "b": 5, "c": 2, "d": 2},
        vram_budget=MiB(12),
        scheduler=SCHEDULER,
    ),
}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("box", BOXES)
def test_nobody_waits_longer_than_its_patience_and_what_was_there_before_it(
    box: str, seed: int
) -> None:
    spec = BOXES[box]
    dice = random.Random(seed)
    hot = dice.sample("abcd", dice.choice([1, 2, 3]))
    trace = tuple(
        Arrivals(
            name=f"r{n}",
            at=Seconds(at),
            ask=Ask(
                model=ModelId(dice.choice(hot) if dice.random() < 0.97 else dice.choice("abcd")),
                duration=Seconds(dice.uniform(0.2, LONGEST)),
                outcome=dice.choice([Outcome.FINISHED, Outcome.TOOL_CALLS]),
                conversation=dice.choice("xyz"),
            ),
        )
        for n, at in enumerate(_steadily(dice, until=60.0))
    )

    books = simulate(trace, spec, Pace(load=Seconds(LOAD), stop=Seconds(STOP)))

    assert all(request.granted is not None for request in books.requests)
    for request in books.requests:
        phases = 1 + len({other.model for other in _ahead_of(request, books)})
        bound = PATIENCE + phases * (LONGEST + STOP + LOAD + LONGEST)
        assert _in_line(request) <= bound, f"{request} behind {_ahead_of(request, books)}"


def _steadily(dice: random.Random, until: float) -> list[float]:
    at, times = 0.0, []
    while at < until:
        times.append(at)
        at += dice.uniform(0.05, 0.6)
    return times


def _ahead_of(request: Request, books: Books) -> list[Request]:
    """Who came before, and was still in the line when this one's patience ended."""
    ended = request.arrived + PATIENCE
    return [
        other
        for other in books.requests
        if other.arrived < request.arrived
        and other.model != request.model
        and other.promoted is not None
        and other.promoted > ended
    ]


def _in_line(request: Request) -> float:
    assert request.granted is not None
    promoted = request.granted if request.promoted is None else request.promoted
    return promoted - request.arrived
