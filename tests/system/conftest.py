"""A failed system test shows what the daemon said."""

from collections.abc import Generator

import pytest

from tests.support.box import Box


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    box = getattr(item, "funcargs", {}).get("box")
    if report.failed and isinstance(box, Box) and box.folder.exists():
        report.sections.append(("serve.log", box.log()[-8000:]))
    return report
