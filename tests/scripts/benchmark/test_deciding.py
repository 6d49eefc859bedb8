import pytest

from qmsup.units import MiB, Seconds
from scripts.benchmark.deciding import BUDGETS, PATIENCES, Box, History, measure, worst
from scripts.benchmark.figures import spread


def box(patience: Seconds, budget: MiB | None) -> Box:
    return Box(models=9, waiting=20, patience=patience, budget=budget)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("patience", PATIENCES.values(), ids=PATIENCES.keys())
def test_the_line_of_a_history_stays_about_full(patience: Seconds, budget: MiB | None) -> None:
    history = History(box(patience, budget))
    assert history.line == 20

    lengths = []
    for _ in range(40):
        history.go_on(25)
        lengths.append(history.line)

    assert len(history.times_us) >= 1000
    assert 15 < sum(lengths) / len(lengths) < 25, "who leaves it for a load comes back"


def test_as_many_events_as_asked_for_are_timed() -> None:
    found = measure(box(Seconds(0.0), None), events=50)

    assert 50 <= found.count <= 52
    assert 0 <= found.p50 <= found.p99 <= found.most


def test_of_two_policies_the_worse_is_told() -> None:
    assert worst([spread([1.0, 9.0, 5.0]), spread([4.0, 7.0, 6.0])]) == {"p50": 6.0, "p99": 9.0}
