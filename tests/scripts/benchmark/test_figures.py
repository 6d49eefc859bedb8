import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.benchmark.figures import Tally, Who, median, percentile, ratio, spread

SOME = st.lists(st.floats(min_value=0, max_value=1e9), min_size=1)


@pytest.mark.parametrize(
    ("values", "share", "found"),
    [
        ([5.0], 0.99, 5.0),
        ([1.0, 2.0, 3.0, 4.0], 0.5, 2.0),
        ([4.0, 3.0, 2.0, 1.0], 0.75, 3.0),
        ([float(n) for n in range(1, 101)], 0.99, 99.0),
        ([1.0, 2.0], 0.0, 1.0),
        ([1.0, 2.0], 1.0, 2.0),
    ],
)
def test_a_percentile_is_one_of_the_values(values: list[float], share: float, found: float) -> None:
    assert percentile(values, share) == found


@given(SOME, st.floats(min_value=0, max_value=1))
def test_at_least_the_share_of_values_lies_at_or_below_its_percentile(
    values: list[float], share: float
) -> None:
    bound = percentile(values, share)

    assert bound in values
    assert sum(value <= bound for value in values) >= share * len(values) - 1e-6


@pytest.mark.parametrize(
    ("values", "found"),
    [([3.0], 3.0), ([1.0, 9.0], 5.0), ([9.0, 1.0, 2.0], 2.0), ([4.0, 1.0, 3.0, 2.0], 2.5)],
)
def test_the_median_of_an_even_number_lies_between_the_two_in_the_middle(
    values: list[float], found: float
) -> None:
    assert median(values) == found


def test_nothing_measured_is_not_a_number_rather_than_zero() -> None:
    empty = spread([])

    assert empty.count == 0
    assert all(math.isnan(number) for number in (empty.p50, empty.p99, empty.most))
    assert math.isnan(percentile([], 0.5))


def test_a_spread_tells_middle_edge_and_worst() -> None:
    found = spread([float(n) for n in range(1, 201)])

    assert (found.count, found.p50, found.p99, found.most) == (200, 100.5, 198.0, 200.0)


@pytest.mark.parametrize(
    ("ours", "theirs"), [(1.0, 0.0), (1.0, -2.0), (math.nan, 1.0), (1.0, math.nan)]
)
def test_a_ratio_to_nothing_is_unknown(ours: float, theirs: float) -> None:
    assert math.isnan(ratio(ours, theirs))


def test_what_is_added_is_taken_round_by_round_so_that_drift_cancels() -> None:
    tally = Tally()
    for direct, qmsup in ((100.0, 150.0), (400.0, 450.0), (50.0, 100.0)):
        tally.add(Who.DIRECT, direct)
        tally.add(Who.QMSUP, qmsup)

    added = tally.over(Who.DIRECT)

    assert added.rounds == {Who.QMSUP: [50.0, 50.0, 50.0]}
    assert added.medians() == {Who.QMSUP: 50.0}


def test_a_round_in_which_nothing_was_measured_does_not_count() -> None:
    tally = Tally()
    tally.add(Who.ROUTER, math.nan)
    tally.add(Who.ROUTER, 7.0)

    assert tally.median(Who.ROUTER) == 7.0
    assert math.isnan(tally.median(Who.NGINX))
