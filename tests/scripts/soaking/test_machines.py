import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from typing_extensions import override

from scripts.soaking import machines
from scripts.soaking.found import FoundError
from scripts.soaking.machines import Source, soak, sources
from scripts.soaking.tally import Tally
from tests.support.scheduling_machine import SchedulerMachine


class Fragile(RuleBasedStateMachine):
    """Breaks when it is pushed twice with more than three."""

    def __init__(self) -> None:
        super().__init__()
        self.pushes = 0

    @rule(by=st.integers(0, 10))
    def push(self, by: int) -> None:
        self.pushes += by > 3
        assert self.pushes < 2, "it fell"


class Sturdy(Fragile):
    """Does not."""

    @override
    def push(self, by: int) -> None:
        pass


def test_what_a_machine_finds_is_told_as_short_as_can_be_with_how_to_repeat_it() -> None:
    tally = Tally()

    with pytest.raises(FoundError, match=r"it fell.*seed 5") as found:
        machines._source_of(Fragile).run(5, tally)

    report = found.value.report()
    assert "state.push(by=4)\nstate.push(by=4)" in report
    assert report.endswith("scripts/soak --minutes 0 --seed 5 --only Fragile")
    assert tally.counts["histories"]
    assert tally.counts["steps"]


def test_what_the_dice_find_is_told_as_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: SchedulerMachine, **_given: object) -> None:
        raise ValueError("no leases today")

    monkeypatch.setattr(SchedulerMachine, "take_a_lease", refuse)

    with pytest.raises(FoundError, match="no leases today") as found:
        machines._roll(3, Tally())

    assert found.value.story.count("machine.") == 3
    assert "\nmachine.take_a_lease(" in found.value.story
    assert found.value.again.endswith("--seed 3 --only dice")


def test_it_goes_round_until_it_is_over_and_once_at_the_least() -> None:
    taken: list[int] = []
    chosen = [Source(name="x", run=lambda number, _tally: taken.append(number))] * 2

    soak(chosen, 7, lambda: True, Tally())
    soak(chosen, 20, lambda: len(taken) > 6, Tally())

    assert taken == [7, 7, 20, 20, 21, 21, 22]


def test_every_machine_of_the_core_is_in_it() -> None:
    names = {source.name for source in sources()}

    assert {"dice", "SchedulerMachine", "EveryLifeEnds", "LimiterMachine"} <= names
