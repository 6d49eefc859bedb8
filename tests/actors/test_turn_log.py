"""The log of what a turn decided."""

import pytest

from qmsup.actors.turn_log import MOST, TurnLog
from qmsup.ids import EventNumber
from qmsup.log import Log


def test_a_turn_of_thousands_of_decisions_is_told_in_part_and_the_next_one_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "qmsup")
    log = TurnLog(Log("scheduler"))

    for turn in (7, 8):
        for number in range(5000):
            log.info("lease.adopted", cause=EventNumber(turn), request=number)
    assert not caplog.records

    log.write()
    log.write()

    told = [(r.message, vars(r)["qmsup_fields"]["cause"]) for r in caplog.records]
    assert told == [
        pair
        for turn in (7, 8)
        for pair in [*[("lease.adopted", turn)] * MOST, ("decisions.left_out", turn)]
    ]
