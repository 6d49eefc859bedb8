"""What is counted while a trace runs."""

import pytest

from qmsup.core.scheduling.events import Outcome
from qmsup.ids import ModelId, RequestId
from qmsup.simulation.books import Books, End, Meter, Request
from qmsup.units import Seconds

A = ModelId("a")


def request(name: str = "r", at: float = 0.0) -> Request:
    return Request(id=RequestId(name), model=A, patience=Seconds(300.0), arrived=Seconds(at))


def test_a_meter_adds_up_the_times_in_which_it_was_so() -> None:
    meter = Meter()

    for at, is_so in ((1, True), (2, True), (4, False), (5, False), (6, True), (6.5, False)):
        meter.set(is_so=is_so, now=Seconds(at))

    assert meter.total == 3.5


def test_a_swap_loses_time_only_while_somebody_waits_for_it() -> None:
    books = Books()
    books.swaps({A}, Seconds(0.0))
    asked = request(at=2.0)
    books.arrive(asked, Seconds(2.0))
    books.swaps(set(), Seconds(5.0))
    books.grant(asked, Seconds(5.0))
    books.end(asked, End.SERVED, Outcome.FINISHED, Seconds(9.0))

    assert books.models[A].lost.total == books.all.lost.total == 3.0
    assert books.models[A].busy.total == 4.0
    assert books.is_settled


def test_the_wait_in_line_ends_when_the_load_begins() -> None:
    asked = request(at=1.0)
    asked.promoted, asked.granted = Seconds(3.0), Seconds(8.0)

    assert (asked.in_line, asked.waited) == (2.0, 7.0)


def test_a_request_that_was_never_granted_waited_until_its_end() -> None:
    books, asked = Books(), request(at=1.0)
    books.arrive(asked, Seconds(1.0))
    books.end(asked, End.REFUSED, "line_full", Seconds(4.0))

    assert (asked.in_line, asked.waited) == (3.0, 3.0)


def test_what_waits_when_all_is_over_was_never_answered() -> None:
    books, asked = Books(), request()
    books.arrive(asked, Seconds(0.0))

    books.close(Seconds(7.0))

    assert asked.end is End.UNANSWERED
    assert books.is_settled


def test_a_request_that_ends_twice_is_a_bug() -> None:
    books, asked = Books(), request()
    books.arrive(asked, Seconds(0.0))
    books.end(asked, End.LEFT, "", Seconds(1.0))

    with pytest.raises(AssertionError, match="ended as left, and now as served"):
        books.end(asked, End.SERVED, "", Seconds(2.0))


def test_loads_are_counted_of_each_model_and_of_all() -> None:
    books = Books()
    books.load(A)
    books.load(ModelId("b"))
    books.load_failed(A)
    books.load_aborted(ModelId("b"))

    assert (books.models[A].loads, books.models[A].failed, books.models[A].aborted) == (1, 1, 0)
    assert (books.all.loads, books.all.failed, books.all.aborted) == (2, 1, 1)
