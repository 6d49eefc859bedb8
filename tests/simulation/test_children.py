"""Children that take their time, and are ended exactly once each."""

import pytest

from qmsup.ids import Incarnation, ModelId
from qmsup.simulation.agenda import Agenda
from qmsup.simulation.children import Children, Pace, Report
from qmsup.units import Seconds

A = ModelId("a")


class Owner:
    """Tells children what to do at its times, and notes what they report."""

    def __init__(self, pace: Pace) -> None:
        self.agenda = Agenda()
        self.said: list[str] = []
        self.children = Children(pace, self.agenda, self._hear)

    def up(self, at: float, incarnation: int) -> None:
        self.agenda.at(at, lambda: self.children.bring_up(A, Incarnation(incarnation)))

    def stop(self, at: float, incarnation: int) -> None:
        self.agenda.at(at, lambda: self.children.stop(Incarnation(incarnation)))

    def run(self) -> list[str]:
        self.agenda.run(lambda: None, lambda: False)
        return self.said

    def _hear(self, report: Report) -> None:
        what = type(report).__name__.removeprefix("Process").lower()
        self.said.append(f"{self.agenda.now:g} {what} {report.incarnation}")


@pytest.fixture
def owner() -> Owner:
    return Owner(Pace(load=Seconds(4.0), stop=Seconds(1.0)))


def test_a_load_and_a_stop_take_their_time(owner: Owner) -> None:
    owner.up(0, 1)
    owner.stop(10, 1)

    assert owner.run() == ["0 starting 1", "4 ready 1", "11 stopped 1"]


def test_a_start_that_is_given_up_never_becomes_ready(owner: Owner) -> None:
    owner.up(0, 1)
    owner.stop(3.5, 1)

    assert owner.run() == ["0 starting 1", "4.5 stopped 1"]


def test_a_start_waits_for_the_end_of_the_child_before(owner: Owner) -> None:
    owner.up(0, 1)
    owner.stop(5, 1)
    owner.up(5.5, 2)

    assert owner.run()[2:] == ["6 stopped 1", "6 starting 2", "10 ready 2"]


def test_a_start_that_is_given_up_before_it_began_ends_at_once(owner: Owner) -> None:
    owner.up(0, 1)
    owner.stop(5, 1)
    owner.up(5, 2)
    owner.stop(5.5, 2)

    assert owner.run()[2:] == ["5.5 stopped 2", "6 stopped 1"]


def test_a_second_stop_and_one_of_nobody_change_nothing(owner: Owner) -> None:
    owner.up(0, 1)
    for at, incarnation in ((5, 1), (5.5, 1), (7, 1), (7, 99)):
        owner.stop(at, incarnation)

    assert owner.run()[2:] == ["6 stopped 1"]


def test_the_first_starts_fail_where_that_is_asked_for() -> None:
    owner = Owner(Pace(loads={A: Seconds(2.0)}, fails={A: 1}))
    owner.up(0, 1)
    owner.up(5, 2)

    assert owner.run() == ["0 starting 1", "2 failed 1", "5 starting 2", "7 ready 2"]
