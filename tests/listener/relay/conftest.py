"""What every test of the relay gets: children here are servers of the test's own, of which nobody leaves last words."""

import pytest

from qmsup.listener.relay import last_words


@pytest.fixture(autouse=True)
def short_wait_for_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_words, "_WITHIN", 0.05)
