from prometheus_client.parser import text_string_to_metric_families

from qmsup.actors import metrics
from qmsup.actors.exposition import exposition
from qmsup.actors.tallies import Tallies


def samples(text: str) -> dict[str, float]:
    return {
        f"{s.name}{dict(sorted(s.labels.items()))}": s.value
        for family in text_string_to_metric_families(text)
        for s in family.samples
    }


def test_every_metric_is_there_before_it_has_a_number() -> None:
    text = exposition({}, [])

    for metric in metrics.METRICS:
        assert f"# HELP qmsup_{metric.name} " in text
        assert f"# TYPE qmsup_{metric.name} " in text


def test_what_has_no_labels_begins_at_zero() -> None:
    seen = samples(exposition({}, []))

    assert seen["qmsup_aborted_loads_total{}"] == 0
    assert seen["qmsup_handle_seconds_count{}"] == 0
    assert not any(name.startswith("qmsup_requests_total") for name in seen)


def test_counts_of_several_threads_are_shown_together() -> None:
    one, other = Tallies(), Tallies()
    one.count(metrics.SWAPS, "chat", "fits")
    other.count(metrics.TOKENS, "chat", "in", by=12)

    seen = samples(exposition({}, [one, other]))

    assert seen["qmsup_swaps_total{'model': 'chat', 'reason': 'fits'}"] == 1
    assert seen["qmsup_tokens_total{'direction': 'in', 'model': 'chat'}"] == 12


def test_a_spread_counts_upwards_and_ends_with_all() -> None:
    tallies = Tallies()
    for seconds in (0.1, 0.2, 3.0, 10_000.0):
        tallies.observe(metrics.LOAD, seconds, "chat")

    seen = samples(exposition({}, [tallies]))

    def up_to(bound: str) -> float:
        return seen[f"qmsup_load_seconds_bucket{{'le': '{bound}', 'model': 'chat'}}"]

    assert [up_to("0.1"), up_to("0.25"), up_to("5.0"), up_to("+Inf")] == [1, 2, 3, 4]
    assert seen["qmsup_load_seconds_count{'model': 'chat'}"] == 4
    assert seen["qmsup_load_seconds_sum{'model': 'chat'}"] == 10_003.3


def test_gauges_and_odd_names_are_shown_as_they_are() -> None:
    odd = 'a "quoted"\\name\n'

    seen = samples(exposition({"inflight": {(odd,): 3}, "line_length": {(): 2}}, []))

    assert seen[f"qmsup_inflight{ {'model': odd} }"] == 3
    assert seen["qmsup_line_length{}"] == 2
