from qmsup.core.scheduling.deadlines import Deadlines
from qmsup.units import Seconds


def due(deadlines: Deadlines[str], now: float) -> str:
    found = []
    while (subject := deadlines.take_due(Seconds(now))) is not None:
        found.append(subject)
    return "".join(found)


def test_none_is_armed_without_a_deadline() -> None:
    deadlines: Deadlines[str] = Deadlines()

    assert deadlines.earliest() is None
    assert due(deadlines, 100.0) == ""


def test_they_come_in_order_and_once() -> None:
    deadlines: Deadlines[str] = Deadlines()
    for at, subject in ((3, "c"), (1, "a"), (2, "b"), (1, "z")):
        deadlines.add(Seconds(at), subject)

    assert deadlines.earliest() == 1.0
    assert due(deadlines, 2.0) == "azb"
    assert deadlines.earliest() == 3.0
    assert len(deadlines) == 1


def test_a_cancelled_one_does_not_come() -> None:
    deadlines: Deadlines[str] = Deadlines()
    first = deadlines.add(Seconds(1), "a")
    deadlines.add(Seconds(2), "b")

    deadlines.cancel(first)
    deadlines.cancel(first)
    deadlines.cancel(None)

    assert deadlines.earliest() == 2.0
    assert len(deadlines) == 1
    assert due(deadlines, 9.0) == "b"


def test_cancelled_ones_do_not_pile_up() -> None:
    deadlines: Deadlines[int] = Deadlines()
    alarms = [deadlines.add(Seconds(n), n) for n in range(1000)]

    for alarm in alarms[:-1]:
        deadlines.cancel(alarm)

    assert len(deadlines) == 1
    assert len(deadlines._heap) < 100
    assert deadlines.take_due(Seconds(1000)) == 999
