"""Words for people; what has none yet is told by its name."""

import pytest

from qmsup.core.scheduling import wording
from qmsup.core.scheduling.line import Because
from qmsup.units import Seconds


@pytest.mark.parametrize("because", Because)
def test_every_reason_to_wait_has_words(because: Because) -> None:
    assert wording.reason(because) != because


def test_what_has_no_words_is_told_by_its_name() -> None:
    assert wording.reason("moonlight") == "moonlight"
    assert wording.choice("moonlight") == "policy moonlight"
    assert "coldest" in wording.choice("budget")


def test_lists_are_cut_and_things_are_counted() -> None:
    assert wording.listed("abc") == "a, b, c"
    assert wording.listed("abcdefg", most=3) == "a, b, c and 4 more"
    assert (wording.counted(1, "request"), wording.counted(2, "request")) == (
        "1 request",
        "2 requests",
    )
    assert (wording.waiting(1), wording.waiting(2)) == ("1 request waits", "2 requests wait")


@pytest.mark.parametrize(
    ("seconds", "told"), [(0.8124, "0.812 s"), (75.26, "75.3 s"), (720.0, "12 min")]
)
def test_spans_are_as_exact_as_a_person_needs(seconds: float, told: str) -> None:
    assert wording.span(Seconds(seconds)) == told
