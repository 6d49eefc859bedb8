"""Figures in words; what tables look like is seen with the command."""

import pytest

from qmsup.core.scheduling.effects import Record
from qmsup.ids import EventNumber, ModelId, RequestId
from qmsup.simulation.tables import say_record, say_seconds
from qmsup.units import Seconds


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0.00 s"), (0.125, "0.12 s"), (9.99, "9.99 s"), (42.06, "42.1 s"), (300.4, "300 s")],
)
def test_seconds_have_the_digits_that_matter(seconds: float, said: str) -> None:
    assert say_seconds(seconds) == said


def test_a_decision_is_a_line_with_its_time_and_reason() -> None:
    record = Record(
        cause=EventNumber(3),
        decision="swap.started",
        model=ModelId("b"),
        request=RequestId("x/2"),
        evicts=(ModelId("a"), ModelId("c")),
        because="budget",
    )

    assert say_record(Seconds(1.5), record) == (
        "+     1.500 s  swap.started     model=b request=x/2 evicts=a,c because=budget"
    )


def test_a_decision_without_particulars_is_its_name() -> None:
    record = Record(cause=EventNumber(3), decision="over")

    assert say_record(Seconds(0.0), record) == "+     0.000 s  over"
