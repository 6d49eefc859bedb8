from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from qmsup.core.scheduling.events import LoadAsked, RequestArrived
from qmsup.core.scheduling.line import Case, Line, Rank, Waiter, Wants
from qmsup.ids import AskId, ModelId, RequestId, WorkerId
from qmsup.units import Seconds


def waiter(model: str, number: int, *, arrived: float = 0.0, streaming: bool = False) -> Waiter:
    origin = RequestArrived(
        request=RequestId(f"{model}{number}"),
        listener=WorkerId("w"),
        model=ModelId(model),
        streaming=streaming,
    )
    return Waiter(origin, Case(origin.model, Wants.LEASE), Rank(Seconds(arrived), number))


def line_of(*waiters: Waiter, priority: Mapping[str, int] | None = None) -> Line:
    line = Line({ModelId(m): p for m, p in (priority or {}).items()})
    for one in waiters:
        line.add(one)
    return line


def told(line: Line) -> str:
    return " ".join(
        w.origin.request for w in line.in_order() if isinstance(w.origin, RequestArrived)
    )


def test_arrival_decides() -> None:
    line = line_of(waiter("b", 1), waiter("a", 2), waiter("b", 3))

    assert told(line) == "b1 a2 b3"


def test_priority_comes_before_arrival() -> None:
    arrivals = [waiter(model, n) for n, model in enumerate("BDCA")]

    line = line_of(*arrivals, priority={"A": 10, "B": 5, "C": 5, "D": 1})

    assert told(line) == "A3 B0 C2 D1"
    assert [line.place_of(w) for w in arrivals] == [2, 4, 3, 1]


def test_one_that_waited_elsewhere_stands_where_it_arrived() -> None:
    late = waiter("a", 3, arrived=-5.0)
    line = line_of(waiter("a", 1), waiter("a", 2), late)

    assert told(line) == "a3 a1 a2"
    assert line.place_of(late) == 1


def test_other_priorities_reorder_it() -> None:
    line = line_of(waiter("a", 1), waiter("b", 2))
    line.has_moved = False

    line.reorder({ModelId("b"): 1})

    assert told(line) == "b2 a1"
    assert line.has_moved


def test_without_priorities_an_arrival_moves_nobody() -> None:
    assert not line_of(waiter("a", 1)).has_moved
    assert line_of(waiter("a", 1), priority={"a": 1}).has_moved
    assert line_of(waiter("a", 2), waiter("a", 1)).has_moved
    hurried = waiter("a", 3)
    hurried.case = hurried.case._replace(is_past=True)
    assert line_of(hurried).has_moved


def test_streaming_waiters_are_counted_and_loads_do_not_stream() -> None:
    load = Waiter(
        LoadAsked(ask=AskId("x"), model=ModelId("a")),
        Case(ModelId("a"), Wants.READY),
        Rank(Seconds(0.0), 9),
    )
    streaming = waiter("a", 2, streaming=True)
    line = line_of(waiter("a", 1), streaming, load)

    assert (line.size, line.streaming) == (3, 1)
    assert line.count(ModelId("a")) == 3
    line.remove(streaming)
    assert (line.size, line.streaming) == (2, 0)


def test_whoever_is_past_its_patience_stands_before_the_rest_whatever_their_priority() -> None:
    arrivals = [waiter(model, n) for n, model in enumerate("ABAB")]
    for one in arrivals[2:]:
        one.case = one.case._replace(is_past=True)

    line = line_of(*arrivals, priority={"A": 1, "B": 5})

    assert told(line) == "A2 B3 B1 A0"
    assert [line.place_of(w) for w in arrivals] == [4, 3, 1, 2]
    assert line.past == 2
    line.remove(arrivals[2])
    assert line.past == 1


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(-3, 3)), max_size=12),
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 2)),
)
def test_a_place_is_the_number_in_the_line(
    arrivals: list[tuple[str, int]], priority: dict[str, int]
) -> None:
    line = line_of(priority=priority)
    for number, (model, arrived) in enumerate(arrivals):
        new = waiter(model, number, arrived=arrived)
        line.add(new)
        assert line.in_order()[line.place_of(new) - 1] is new

    assert [line.place_of(w) for w in line.in_order()] == list(range(1, len(arrivals) + 1))
    for one in line.in_order()[::2]:
        line.remove(one)
    assert [line.place_of(w) for w in line.in_order()] == list(range(1, line.size + 1))
    assert all(group.waiters for group in line.groups.values())


def test_those_put_back_stand_where_they_arrived_among_those_that_came_since() -> None:
    first, second, other, third = (
        waiter("a", 1, streaming=True),
        waiter("a", 2),
        waiter("b", 3),
        waiter("a", 4),
    )
    line = line_of(first, second, other)
    taken = [*line.take(ModelId("a")), *line.take(ModelId("b"))]
    line.add(third)

    line.put_back(taken)

    assert told(line) == "a1 a2 b3 a4"
    assert (line.size, line.streaming) == (4, 1)
    assert [line.place_of(one) for one in (first, second, other, third)] == [1, 2, 3, 4]
