from pathlib import Path

import pytest

from qmsup.telemetry.kernel_files import number_in, text_of
from tests.support.machine import write


@pytest.mark.parametrize(
    ("content", "number"),
    [("42", 42), ("0", 0), ("max", None), ("", None), ("-1", None), ("4 2", None)],
)
def test_a_number_is_one_or_is_none(tmp_path: Path, content: str, number: int | None) -> None:
    write(tmp_path / "file", content)

    assert number_in(tmp_path / "file") == number


def test_what_is_not_there_or_empty_or_a_folder_says_nothing(tmp_path: Path) -> None:
    write(tmp_path / "empty", "")

    assert [text_of(tmp_path / name) for name in ("gone", "empty", ".")] == [None, None, None]
