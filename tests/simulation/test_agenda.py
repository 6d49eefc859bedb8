"""Virtual time: things happen in order, and the clock is moved by nothing else."""

from functools import partial

import pytest

from qmsup.errors import InvariantBrokenError
from qmsup.simulation.agenda import Agenda
from qmsup.units import Seconds


def never() -> bool:
    return False


def test_things_happen_in_the_order_of_their_times_and_then_as_they_were_said() -> None:
    agenda, done = Agenda(), list[tuple[float, str]]()

    def do(name: str) -> None:
        done.append((agenda.now, name))

    for name, at in (("late", 5), ("first", 1), ("second", 1)):
        agenda.at(at, partial(do, name))
    agenda.run(partial(do, "wake"), never)

    assert done == [(1, "first"), (1, "second"), (5, "late")]


def test_a_wake_rings_once_and_before_what_happens_at_its_time() -> None:
    agenda, done = Agenda(), list[tuple[float, str]]()
    agenda.at(2, lambda: done.append((agenda.now, "action")))
    agenda.wake = Seconds(2.0)

    agenda.run(lambda: done.append((agenda.now, "wake")), never)

    assert done == [(2, "wake"), (2, "action")]
    assert agenda.wake is None


def test_a_time_that_has_passed_is_now() -> None:
    agenda, done = Agenda(), list[float]()

    def look_back() -> None:
        agenda.at(1, lambda: done.append(agenda.now))
        agenda.wake = Seconds(2.0)

    agenda.at(7, look_back)
    agenda.run(lambda: done.append(agenda.now), never)

    assert done == [7, 7]


def test_it_stops_when_it_is_over_whatever_else_is_to_be_done() -> None:
    agenda, done = Agenda(), list[float]()
    for at in range(10):
        agenda.at(at, lambda: done.append(agenda.now))

    agenda.run(lambda: None, lambda: len(done) == 3)

    assert done == [0, 1, 2]


def test_a_scheduler_that_wakes_for_ever_at_one_instant_is_a_bug_and_no_endless_run() -> None:
    agenda = Agenda()
    agenda.wake = Seconds(3.0)

    def again() -> None:
        agenda.wake = Seconds(3.0)

    with pytest.raises(InvariantBrokenError, match=r"for ever at 3\.0"):
        agenda.run(again, never)
