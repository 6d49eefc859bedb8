"""A failed system test shows what the daemon said."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support.box import Box


@pytest.fixture
def enough(tmp_path: Path) -> Path:
    """For `--until` of the fake child: a stream goes on until a test makes this file, however slow the machine is."""
    return tmp_path / "enough"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    box = getattr(item, "funcargs", {}).get("box")
    if report.failed and isinstance(box, Box) and box.folder.exists():
        report.sections.append(("serve.log", box.log()[-8000:]))
    return report
