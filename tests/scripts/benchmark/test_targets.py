import math

import pytest

from scripts.benchmark.figures import Tally, Who
from scripts.benchmark.targets import Target, row

AGAINST_ROUTER = Target(bound=1.5, at_most=False, against=Who.ROUTER)


@pytest.mark.parametrize(
    ("target", "figures", "found", "kept"),
    [
        (Target(bound=8), {Who.QMSUP: 8.0}, 8.0, True),
        (Target(bound=8), {Who.QMSUP: 8.1}, 8.1, False),
        (Target(bound=25_000, at_most=False), {Who.QMSUP: 30_000.0}, 30_000.0, True),
        (AGAINST_ROUTER, {Who.QMSUP: 30.0, Who.ROUTER: 20.0}, 1.5, True),
        (AGAINST_ROUTER, {Who.QMSUP: 29.0, Who.ROUTER: 20.0}, 1.45, False),
    ],
)
def test_a_target_bounds_a_figure_or_its_ratio_to_a_peer(
    target: Target, figures: dict[Who, float], found: float, *, kept: bool
) -> None:
    judged = target.judged(figures)

    assert judged[0] == pytest.approx(found)
    assert judged[1] is kept


@pytest.mark.parametrize("figures", [{}, {Who.QMSUP: 30.0}, {Who.ROUTER: 20.0}])
def test_a_target_cannot_be_judged_without_both_figures(figures: dict[Who, float]) -> None:
    found, kept = AGAINST_ROUTER.judged(figures)

    assert math.isnan(found)
    assert kept is None


def test_a_target_reads_like_the_table_it_stands_in() -> None:
    assert AGAINST_ROUTER.words() == ">= 1.5 x router"
    assert Target(bound=8).words() == "<= 8"


def test_a_row_shows_medians_over_the_rounds() -> None:
    tally = Tally({Who.QMSUP: [1.0, 9.0, 2.0], Who.ROUTER: [4.0]})

    shown = row("swap", "ms", tally, Target(bound=1.3, against=Who.ROUTER))

    assert shown.figures == {Who.QMSUP: 2.0, Who.ROUTER: 4.0}
    assert (shown.found, shown.kept) == (0.5, True)


def test_a_row_without_a_target_is_not_judged() -> None:
    shown = row("swap", "ms", Tally({Who.QMSUP: [1.0]}))

    assert math.isnan(shown.found)
    assert shown.kept is None
