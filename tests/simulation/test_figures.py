"""What a run comes to, in figures."""

from collections.abc import Callable
from functools import partial

import pytest

from qmsup.core.scheduling.events import Outcome
from qmsup.ids import ModelId, RequestId
from qmsup.simulation.books import Books, End, Request
from qmsup.simulation.figures import Report, Waits, report_of
from qmsup.units import Seconds

A, B = ModelId("a"), ModelId("b")


def run(
    *asked: tuple[ModelId, float, float | None, float, End, str], patience: float = 5
) -> Report:
    """Requests as (model, arrived, granted, ended, end, detail)."""
    books = Books()
    steps: list[tuple[float, int, Callable[[], None]]] = []
    for number, (model, arrived, granted, ended, end, detail) in enumerate(asked):
        request = Request(
            id=RequestId(f"r{number}"),
            model=model,
            patience=Seconds(patience),
            arrived=Seconds(arrived),
        )
        steps.append((arrived, 0, partial(books.arrive, request, Seconds(arrived))))
        if granted is not None:
            steps.append((granted, 1, partial(books.grant, request, Seconds(granted))))
        steps.append((ended, 2, partial(books.end, request, end, detail, Seconds(ended))))
    for _, _, step in sorted(steps, key=lambda step: step[:2]):
        step()
    return report_of(books)


def served(
    model: ModelId, arrived: float, granted: float, ended: float
) -> tuple[ModelId, float, float | None, float, End, str]:
    return (model, arrived, granted, ended, End.SERVED, Outcome.FINISHED)


def test_requests_are_counted_by_their_ends() -> None:
    report = run(
        served(A, 0, 0, 1),
        (A, 1, 1, 2, End.SERVED, Outcome.TOOL_CALLS),
        (A, 2, None, 2, End.REFUSED, "line_full"),
        (A, 2, None, 2, End.REFUSED, "line_full"),
        (B, 2, None, 3, End.REFUSED, "queue_full"),
        (B, 3, 3, 4, End.LEFT, "while answered"),
        (B, 4, 4, 5, End.CUT, "model_unloaded"),
        (B, 5, None, 5, End.UNANSWERED, ""),
    )

    total = report.total
    assert total.requests == 8
    assert total.served == {"finished": 1, "tool_calls": 1}
    assert total.refused == {"line_full": 2, "queue_full": 1}
    assert (total.left, total.cut, total.unanswered) == (1, {"model_unloaded": 1}, 1)
    assert total.unserved == 5
    assert report.models[A].requests == report.models[B].requests == 4
    assert report.span == 5.0


def test_percentiles_are_waits_that_were_seen() -> None:
    report = run(*(served(A, 0, wait, 200) for wait in range(1, 101)))

    assert report.total.wait == Waits(
        mean=Seconds(50.5), p50=Seconds(50.0), p95=Seconds(95.0), longest=Seconds(100.0)
    )


@pytest.mark.parametrize(("waited", "starved"), [(15.0, 0), (15.5, 1)])
def test_who_waits_longer_than_patience_and_the_longest_request_is_starved(
    waited: float, starved: int
) -> None:
    report = run(served(A, 0, 0, 10), served(B, 0, waited, 17), patience=5)

    assert report.models[B].starved == report.total.starved == starved


def test_a_model_is_busy_while_it_answers_and_all_are_while_any_does() -> None:
    report = run(served(A, 0, 0, 6), served(A, 1, 1, 3), served(B, 4, 4, 10))

    assert (report.models[A].busy, report.models[B].busy, report.total.busy) == (0.6, 0.6, 1.0)


def test_nothing_at_all_has_figures_too() -> None:
    report = run()

    assert (report.span, report.total.requests, report.total.busy) == (0.0, 0, 0.0)
    assert report.total.wait.longest == 0.0
    assert report.models == {}
