"""The ledger of what broke."""

import time
from collections.abc import Iterator

import pytest

from qmsup.actors import mishaps


@pytest.fixture(autouse=True)
def a_clean_ledger() -> Iterator[None]:
    mishaps.forget()
    yield
    mishaps.forget()


def _broken(text: str) -> Exception:
    with pytest.raises(ValueError, match="invalid literal") as caught:
        int(text)
    return caught.value


def test_a_part_is_told_with_how_often_and_what_last() -> None:
    assert mishaps.note("feed", "Look", _broken("a prompt")) == 1
    assert mishaps.note("books", "Reported", None) == 1
    assert mishaps.note("feed", "mend", _broken("a prompt")) == 2

    books, feed = mishaps.told()

    assert (books.part, books.times, books.because) == ("books", 1, "NoneType")
    assert (feed.part, feed.times, feed.doing) == ("feed", 2, "mend")
    assert abs(feed.last - time.time()) < 60
    assert feed.because.startswith("ValueError at test_mishaps.py:"), "and nothing of its text"


def test_parts_without_end_are_not_kept() -> None:
    for number in range(1000):
        mishaps.note(f"part {number}", "", None)

    assert len(list(mishaps.told())) == 64
