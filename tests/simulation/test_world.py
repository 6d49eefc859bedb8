"""Whole traces in virtual time: what the scheduler makes of them, and that every request ends."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmsup.core.scheduling.effects import Record
from qmsup.core.scheduling.events import Outcome
from qmsup.errors import Code
from qmsup.ids import ModelId
from qmsup.simulation.books import Books, End
from qmsup.simulation.children import Pace
from qmsup.simulation.figures import report_of
from qmsup.simulation.traces import Arrivals, Ask, Item, Loop, Trace
from qmsup.simulation.world import simulate
from qmsup.spec import SchedulerSpec, Spec
from qmsup.units import Seconds
from tests.support.scheduling import spec_of

ONE_SECOND = Pace(load=Seconds(1.0))


def asks(model: str, at: float = 0.0, duration: float = 1.0, **others: object) -> Arrivals:
    ask = Ask(model=ModelId(model), duration=Seconds(duration))
    return Arrivals(name=f"{model}@{at}", at=Seconds(at), ask=replace(ask, **others))  # type: ignore[arg-type]


def agent(model: str, at: float = 0.0, rounds: int = 20, **others: object) -> Loop:
    ask = Ask(
        model=ModelId(model),
        duration=Seconds(1.0),
        outcome=Outcome.TOOL_CALLS,
        conversation=f"{model}{at}",
    )
    return Loop(
        name=f"{model}{at}",
        at=Seconds(at),
        rounds=rounds,
        gap=Seconds(0.4),
        ask=replace(ask, **others),  # type: ignore[arg-type]
    )


def spec_with(models: str, hold: float = 10.0, **others: object) -> Spec:
    scheduler = replace(SchedulerSpec(hold=Seconds(hold)), **others)  # type: ignore[arg-type]
    return spec_of(models, scheduler=scheduler)


def ends(books: Books) -> list[tuple[str, End | None, str]]:
    return [(request.id, request.end, request.detail) for request in books.requests]


def test_two_agents_whose_models_exclude_each_other_cost_two_loads() -> None:
    spec = spec_of("a b", scheduler=SchedulerSpec())  # holds as they are by default

    books = simulate((agent("a"), agent("b", 0.1)), spec, ONE_SECOND)

    assert report_of(books).total.loads == 2
    assert {request.end for request in books.requests} == {End.SERVED}
    assert len(books.requests) == 40


def test_without_holds_every_round_of_two_agents_costs_a_load() -> None:
    books = simulate((agent("a"), agent("b", 0.1)), spec_with("a b", hold=0.0), ONE_SECOND)

    assert report_of(books).total.loads > 20


def test_a_traces_own_hold_and_patience_reach_the_scheduler() -> None:
    kept = asks("a", hold=Seconds(30.0))
    waits = asks("b", 5), asks("b", 5.5, patience=Seconds(2.0))

    patient = simulate((kept, waits[0]), spec_with("a b"), ONE_SECOND)
    hasty = simulate((kept, waits[1]), spec_with("a b"), ONE_SECOND)

    assert patient.requests[1].in_line == 27.0
    assert hasty.requests[1].in_line == 2.0


def test_a_request_waits_for_its_load_and_the_next_finds_the_model_ready() -> None:
    books = simulate((asks("a"), asks("a", 5)), spec_of("a"), ONE_SECOND)

    assert [request.waited for request in books.requests] == [1.0, 0.0]
    assert books.ended == 6.0


def test_a_swap_takes_the_stop_and_the_load() -> None:
    pace = Pace(load=Seconds(1.0), stop=Seconds(0.5))

    books = simulate((asks("a"), asks("b", 5)), spec_of("a b"), pace)

    assert [request.waited for request in books.requests] == [1.0, 1.5]
    assert books.all.lost.total == 2.5


def test_a_limit_makes_the_second_request_wait_for_the_first() -> None:
    books = simulate((asks("a"), asks("a", 0.1)), spec_of("a", slots=1), ONE_SECOND)

    assert [request.granted for request in books.requests] == [1.0, 2.0]


def test_a_trace_that_calls_two_requests_alike_is_a_bug() -> None:
    with pytest.raises(AssertionError, match=r"a@0\.0 is under way already"):
        simulate((asks("a"), asks("a")), spec_of("a"), ONE_SECOND)


def test_an_alias_is_the_model_and_a_name_nobody_knows_is_refused() -> None:
    spec = spec_of("a")
    model = replace(spec.models[ModelId("a")], aliases=("gpt",))
    spec = replace(spec, models={model.id: model})

    books = simulate((asks("gpt"), asks("ghost")), spec, ONE_SECOND)

    assert books.requests[0].model == "a"
    assert {ended[1:] for ended in ends(books)} == {
        (End.SERVED, Outcome.FINISHED),
        (End.REFUSED, Code.MODEL_NOT_FOUND),
    }


@pytest.mark.parametrize(("after", "detail"), [(0.5, "while waiting"), (1.5, "while answered")])
def test_a_client_leaves_while_it_waits_or_while_it_is_answered(after: float, detail: str) -> None:
    books = simulate((asks("a", abandon_after=Seconds(after)),), spec_of("a"), ONE_SECOND)

    assert [end[1:] for end in ends(books)] == [(End.LEFT, detail)]
    assert books.ended == after


def test_a_start_that_fails_refuses_its_requests_and_ends_an_agents_loop() -> None:
    pace = Pace(load=Seconds(1.0), fails={ModelId("a"): 1})

    books = simulate((agent("a", rounds=5), asks("a", 9)), spec_of("a"), pace)

    assert [end[1] for end in ends(books)] == [End.REFUSED, End.SERVED]
    assert books.unasked == 4
    assert (books.all.loads, books.all.failed) == (2, 1)


def test_a_load_that_nobody_waits_for_any_more_is_given_up_for_another() -> None:
    trace = (asks("a", abandon_after=Seconds(0.2)), asks("b", 0.5))

    books = simulate(trace, spec_of("a b"), ONE_SECOND)

    assert books.models[ModelId("a")].aborted == 1
    assert [end[1] for end in ends(books)] == [End.LEFT, End.SERVED]


def test_repeated_requests_come_at_their_times_however_long_answers_take() -> None:
    item = replace(asks("a", 1, duration=100), times=3, every=Seconds(2.0))

    books = simulate((item,), spec_of("a"), ONE_SECOND)

    assert [request.arrived for request in books.requests] == [1.0, 3.0, 5.0]
    assert len({request.id for request in books.requests}) == 3


def test_the_decisions_are_told_with_their_times() -> None:
    told: list[tuple[float, str]] = []

    def on_record(now: Seconds, record: Record) -> None:
        told.append((now, record.decision))

    simulate((asks("a", 2),), spec_of("a"), ONE_SECOND, on_record)

    assert [t for t in told if t[1].startswith("swap")] == [(2, "swap.started"), (3, "swap.done")]


moments = st.integers(0, 40).map(lambda n: Seconds(n / 4))
maybe = st.none() | moments
demands = st.builds(
    Ask,
    model=st.sampled_from("abcx").map(ModelId),
    duration=moments,
    outcome=st.sampled_from(Outcome),
    hold=maybe,
    patience=maybe,
    timeout=maybe,
    conversation=st.sampled_from(["", "c", "d"]),
    abandon_after=maybe,
)
items = st.one_of(
    st.builds(
        Arrivals,
        name=st.just("n"),
        ask=demands,
        at=moments,
        times=st.integers(1, 4),
        every=moments,
    ),
    st.builds(
        Loop, name=st.just("n"), ask=demands, at=moments, rounds=st.integers(1, 4), gap=moments
    ),
)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    drawn: list[Item] = draw(st.lists(items, min_size=1, max_size=8))
    return tuple(replace(item, name=f"{n}") for n, item in enumerate(drawn))


paces = st.builds(
    Pace,
    load=moments,
    stop=moments,
    fails=st.dictionaries(st.sampled_from("ab").map(ModelId), st.integers(0, 3)),
)


@settings(max_examples=200, deadline=None)
@given(trace=traces(), pace=paces, line=st.sampled_from([1, 3, 2048]), slots=st.integers(1, 3))
def test_every_request_ends_once_and_a_trace_always_runs_the_same_way(
    trace: Trace, pace: Pace, line: int, slots: int
) -> None:
    spec = spec_of("a b c", slots=slots, scheduler=SchedulerSpec(line_max=line))

    books = simulate(trace, spec, pace)

    asked = sum(item.times if isinstance(item, Arrivals) else item.rounds for item in trace)
    assert len(books.requests) + books.unasked == asked
    assert len({request.id for request in books.requests}) == len(books.requests)
    assert all(request.end not in {None, End.UNANSWERED} for request in books.requests)
    assert books.is_settled
    again = simulate(trace, spec, pace)
    assert ends(again) == ends(books)
    assert report_of(again) == report_of(books)
