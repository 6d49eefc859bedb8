"""What every test gets: leaks made loud, and places of its own for sockets and state."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import leaks

_SYSTEM_TEST_WITHIN = 180
"""Seconds. One starts a dozen interpreters, one after the other: six seconds here, a minute beside other work. What
each wait in it may take it says itself; this ends one that hangs."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        is_system = item.get_closest_marker("system") is not None
        if is_system and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_SYSTEM_TEST_WITHIN))


def pytest_configure() -> None:
    # Handed down to every process a test starts, so that one whose parent died is still found.
    os.environ[leaks.MARK] = leaks.own_mark()


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves an actor, a thread or a process behind, and clear it away for the next.

    What stood before the test (fixtures of a wider scope) may stand after it.
    """
    is_system = request.node.get_closest_marker("system") is not None
    before = leaks.look(thorough=is_system)
    yield
    left = leaks.settle(before, thorough=is_system)
    if left:
        story = left.describe()
        left.clear_away()
        pytest.fail(f"left behind by this test:\n{story}", pytrace=False)


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A fresh folder with `run` and `state` in it, which qmsup and its children use in this test.

    Not pytest's `tmp_path`: the address of a Unix socket may have no more than some 100 characters.
    """
    folder = Path(tempfile.mkdtemp(prefix="qm-", dir="/tmp"))
    monkeypatch.setenv("QMSUP_RUNTIME_DIR", str(folder / "run"))
    monkeypatch.setenv("QMSUP_STATE_DIR", str(folder / "state"))
    yield folder
    shutil.rmtree(folder)
