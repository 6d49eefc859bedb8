"""Looking on by asking: what an answer tells more than the one before, in the words of the feed."""

from typing import Any

import pytest

from qmsup.control.polled import PolledMirror
from qmsup.errors import SchedulerUnavailableError
from qmsup.units import Seconds

NOW = Seconds(0.0)


class Told:
    """What the scheduler tells now; a test changes it."""

    def __init__(self) -> None:
        self.epoch = 1
        self.state: dict[str, Any] = {}
        self.decisions: list[dict[str, Any]] = []
        self.activity: list[dict[str, Any]] = []
        self.asked: list[str] = []

    def ask(self, verb: str, **_: object) -> Any:
        self.asked.append(verb)
        if verb == "activity":
            return {"activity": list(self.activity)}
        told = {"endpoint": "", "epoch": self.epoch, "seq": {}}
        return {**told, "state": dict(self.state), "decisions": list(self.decisions)}

    def decide(self, turn: int) -> None:
        self.decisions.append({"time": float(turn), "decision": "swap.started", "turn": turn})


def seen(mirror: PolledMirror) -> list[tuple[str, Any]]:
    return [(item.topic, item.body) for item in mirror.updates(NOW)]


def test_the_state_is_there_from_the_start_and_what_changes_is_told() -> None:
    told = Told()
    told.state = {"model.m": {"state": "stopped"}, "lease.r": {}}
    mirror = PolledMirror(told.ask, every=NOW)
    assert mirror.state == told.state

    told.state = {"model.m": {"state": "ready"}, "line.m": {"waiting": 1}}

    assert seen(mirror) == [
        ("model.m", {"state": "ready"}),
        ("line.m", {"waiting": 1}),
        ("lease.r", None),
    ]
    assert seen(mirror) == []
    assert mirror.state == told.state


def test_each_decision_and_each_request_is_told_once() -> None:
    told = Told()
    told.decide(1)
    mirror = PolledMirror(told.ask, every=NOW)
    assert [decision["turn"] for decision in mirror.decisions] == [1]

    told.decide(2)
    told.activity.append({"request": "r", "model": "m", "key": "2", "fingerprint": "f"})

    assert seen(mirror) == [
        ("decision.swap.started", {"decision": "swap.started", "turn": 2}),
        ("activity.m", {"request": "r", "model": "m"}),
    ]
    assert seen(mirror) == []
    assert mirror.missed == 0


def test_what_was_pushed_out_meanwhile_is_known_to_be_missed() -> None:
    told = Told()
    told.decide(1)
    mirror = PolledMirror(told.ask, every=NOW)

    told.decisions.clear()
    told.decide(7)

    assert [body["turn"] for _, body in seen(mirror)] == [7]
    assert mirror.missed == 1


def test_another_scheduler_counts_anew() -> None:
    told = Told()
    told.decide(9)
    mirror = PolledMirror(told.ask, every=NOW)

    told.epoch, told.decisions = 2, []
    told.decide(1)

    assert [body["turn"] for _, body in seen(mirror)] == [1]
    assert mirror.missed == 0


def test_only_what_is_wanted_is_told_and_asked_for() -> None:
    told = Told()
    told.state = {"model.m": {}, "vram.all": {}}
    mirror = PolledMirror(told.ask, ("model.",), every=NOW)
    told.decide(1)

    assert set(mirror.state) == {"model.m"}
    assert seen(mirror) == []
    assert set(told.asked) == {"subscribe"}


def test_between_two_looks_nothing_is_asked() -> None:
    told = Told()
    mirror = PolledMirror(told.ask, ("model.",))

    assert mirror.updates(NOW) == []
    assert told.asked == ["subscribe"]
    mirror.close()


def test_a_scheduler_that_is_away_is_an_error_and_asked_again() -> None:
    told = Told()

    def away(_verb: str, **_: object) -> Any:
        raise SchedulerUnavailableError("away")

    mirror = PolledMirror(told.ask, every=NOW)
    mirror._ask = away
    with pytest.raises(SchedulerUnavailableError):
        mirror.updates(NOW)
    mirror._ask = told.ask
    assert mirror.updates(NOW) == []
