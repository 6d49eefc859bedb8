from pathlib import Path

import pytest

from qmsup.daemon.epoch import first_incarnation, next_epoch
from qmsup.ids import Epoch


def test_epochs_count_from_one(tmp_path: Path) -> None:
    assert [next_epoch(tmp_path) for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize("text", ["", "garbage", "-7", "9" * 30])
def test_an_unreadable_count_starts_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / "epoch").write_text(text)

    assert next_epoch(tmp_path) == 1


def test_incarnations_of_a_later_life_are_above_those_of_an_earlier_one() -> None:
    assert first_incarnation(Epoch(2)) > first_incarnation(Epoch(1)) + 900_000
