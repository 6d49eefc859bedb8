import random
from dataclasses import replace

import pytest

from scripts.soaking.faults import Fault, Kind, Part, Plan, Stakes, Taken, plan
from scripts.soaking.muddle import Muddled

STAKES = Stakes(models=("m", "n", "paint"), painters=("paint",), listeners=("main", "side"))


def throw(seed: int, stakes: Stakes = STAKES) -> Plan:
    return plan(random.Random(seed), stakes)


def test_the_same_dice_throw_the_same_round() -> None:
    assert throw(1) == throw(1)
    assert throw(1) != throw(2)


def test_in_calm_rounds_only_children_are_hit() -> None:
    stakes = replace(STAKES, parts=(Part.CHILD,))
    faults = [fault for seed in range(40) for fault in throw(seed, stakes).faults]

    assert {fault.part for fault in faults} == {Part.CHILD, None}
    assert {fault.name for fault in faults if fault.part} == {"m", "n", "paint"}


@pytest.mark.parametrize("first", Kind)
def test_each_kind_can_be_had_in_any_round_and_what_there_is_one_of_is_hit_once(
    first: Kind,
) -> None:
    for seed in range(30):
        kinds = [fault.kind for fault in throw(seed, replace(STAKES, first=first)).faults]
        assert first in kinds
        for kind in (Kind.MUDDLE, Kind.STEAL, Kind.FILL):
            assert kinds.count(kind) <= 1


def test_freezes_are_short_or_long_and_never_longer_than_wanted() -> None:
    def lengths(stakes: Stakes) -> list[float]:
        faults = [fault for seed in range(200) for fault in throw(seed, stakes).faults]
        return [fault.lasts_s for fault in faults if fault.kind is Kind.FREEZE]

    stakes = replace(STAKES, first=Kind.FREEZE)

    assert min(lengths(stakes)) < 0.7
    assert max(lengths(stakes)) > 5.0
    assert max(lengths(replace(stakes, longest_s=2.0))) == 2.0


def test_jobs_are_for_painters_alone() -> None:
    askings = [asking for seed in range(20) for asking in throw(seed).askings]

    assert {asking.model for asking in askings if asking.is_job} == {"paint"}
    assert {asking.model for asking in askings if not asking.is_job} == {"m", "n"}


def test_what_was_done_is_told_in_words() -> None:
    frozen = Fault(at_s=1, kind=Kind.FREEZE, part=Part.WORKER, name="main", lasts_s=2.5)
    muddled = Fault(at_s=1, kind=Kind.MUDDLE, lasts_s=1.0, muddled=Muddled(loses=0.1))

    taken = Taken(fault=frozen, at_s=1.25, pid=7)
    assert str(taken) == "1.25 s: frozen worker main (pid 7) for 2.50 s"
    assert taken.until_s == 3.75
    assert "messages muddled for 1.00 s: Muddled(loses=0.1" in str(Taken(fault=muddled, at_s=1.0))
