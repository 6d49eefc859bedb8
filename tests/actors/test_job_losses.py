from functools import partial
from pathlib import Path

from qmsup import child_ends
from qmsup.actors.job_losses import Losses
from qmsup.ids import Incarnation
from qmsup.units import Seconds

FIRST, SECOND = Incarnation(1), Incarnation(2)


def test_what_a_server_ended_of_is_told_once_it_is_known(tmp_path: Path) -> None:
    losses, told = Losses(), list[tuple[str, str]]()
    for name, incarnation in (("a", FIRST), ("b", SECOND)):
        tell = partial(lambda who, words: told.append((who, words)), name)
        losses.add(tmp_path / "m.log", incarnation, Seconds(10.0), tell)
    losses.work(Seconds(10.0))
    assert told == []

    child_ends.leave(tmp_path / "m.log", SECOND, "it was killed")
    losses.work(Seconds(10.001))  # too soon for another look
    assert told == []
    losses.work(Seconds(10.1))
    assert told == [("b", "it was killed")]

    losses.work(Seconds(11.0))
    assert told == [("b", "it was killed"), ("a", "")]
    losses.work(Seconds(12.0))
    assert losses.due is None


def test_a_loss_is_looked_at_at_once_and_then_now_and_again(tmp_path: Path) -> None:
    losses = Losses()

    losses.add(tmp_path / "m.log", FIRST, Seconds(10.0), lambda _: None)
    assert losses.due == 10.0
    losses.work(Seconds(10.0))

    assert losses.due is not None
    assert 10.0 < losses.due < 10.5
