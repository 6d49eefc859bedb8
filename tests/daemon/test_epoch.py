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


@pytest.mark.parametrize(("text", "epoch"), [("8\n", 9), ("9\n", 10), ("garbage", 1)])
def test_a_disk_without_room_for_another_file_counts_on(
    tmp_path: Path, text: str, epoch: int
) -> None:
    (tmp_path / "epoch").write_text(text)
    (tmp_path / "epoch.new").mkdir()  # in the way, as a full disk is

    assert [next_epoch(tmp_path), next_epoch(tmp_path)] == [epoch, epoch + 1]


def test_without_any_count_there_is_no_start_on_such_a_disk(tmp_path: Path) -> None:
    (tmp_path / "epoch.new").mkdir()

    with pytest.raises(FileNotFoundError):
        next_epoch(tmp_path)


def test_incarnations_of_a_later_life_are_above_those_of_an_earlier_one() -> None:
    assert first_incarnation(Epoch(2)) > first_incarnation(Epoch(1)) + 900_000
