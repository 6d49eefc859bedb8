from qmsup.actors import metrics
from qmsup.actors.tallies import Tallies


def test_counts_add_up_by_their_labels() -> None:
    tallies = Tallies()
    tallies.count(metrics.SWAPS, "a", "fits")
    tallies.count(metrics.SWAPS, "a", "fits", by=2)
    tallies.count(metrics.SWAPS, "b", "fits")

    assert tallies.counts == {"swaps_total": {("a", "fits"): 3, ("b", "fits"): 1}}


def test_a_value_belongs_to_the_bound_that_it_equals() -> None:
    tallies = Tallies()
    for value in (0.1, 0.100001, 601.0):
        tallies.observe(metrics.LOAD, value, "a")

    spread = tallies.spreads["load_seconds"][("a",)]
    assert spread.counts[:3] == [1, 1, 0]
    assert spread.counts[-1] == 1
    assert spread.total == 0.1 + 0.100001 + 601.0


def test_names_without_end_are_counted_together() -> None:
    tallies = Tallies()
    for number in range(2500):
        tallies.count(metrics.SWAPS, f"m{number}", "fits")
        tallies.observe(metrics.LOAD, 1.0, f"m{number}")

    assert len(tallies.counts["swaps_total"]) == 2001
    assert tallies.counts["swaps_total"][("other", "other")] == 500
    assert len(tallies.spreads["load_seconds"]) == 2001
    assert sum(tallies.spreads["load_seconds"][("other",)].counts) == 500


def test_a_copy_stays_as_it_is() -> None:
    tallies = Tallies()
    tallies.count(metrics.SWAPS, "a", "fits")
    tallies.observe(metrics.LOAD, 1.0, "a")

    copy = tallies.copy()
    tallies.count(metrics.SWAPS, "a", "fits")
    tallies.observe(metrics.LOAD, 1.0, "a")

    assert copy.counts["swaps_total"] == {("a", "fits"): 1}
    assert sum(copy.spreads["load_seconds"][("a",)].counts) == 1
