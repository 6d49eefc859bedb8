import pytest

from qmsup.control import table
from qmsup.control.table import Column


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (-3.0, "0s"),
        (59.9, "59s"),
        (60, "1m00s"),
        (3599, "59m59s"),
        (3600, "1h00m"),
        (86_399, "23h59m"),
        (90_000, "1d01h"),
    ],
)
def test_durations_are_short(seconds: float | None, text: str) -> None:
    assert table.duration(seconds) == text


@pytest.mark.parametrize(
    ("mib", "text"), [(None, "-"), (0, "0M"), (1023, "1023M"), (1024, "1.0G"), (5325, "5.2G")]
)
def test_memory_is_short(mib: int | None, text: str) -> None:
    assert table.memory(mib) == text


def test_what_is_not_known_is_a_dash() -> None:
    assert [table.text_of(value) for value in (None, "", 0, "x")] == ["-", "-", "0", "x"]


def test_numbers_end_on_the_right_and_lines_have_no_tail(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table.show([Column("N", is_number=True), Column("NAME")], [("100", "a"), ("7", "long name")])

    assert capsys.readouterr().out == "  N  NAME\n100  a\n  7  long name\n"


def test_an_empty_table_is_its_heading(capsys: pytest.CaptureFixture[str]) -> None:
    table.show([Column("NAME")], [])

    assert capsys.readouterr().out == "NAME\n"
