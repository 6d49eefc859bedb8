"""Each module of `core` and `wire` is covered wholly, branches too, by its own tests alone: `scripts/own_coverage.py`.

Its own are tests/x/test_name.py and tests/x/test_name_*.py, as tests/architecture/test_mirror.py has it. The modules of
core/scheduling are entered by one door, so all tests of the core's stories are theirs; what every eviction policy
promises is tested of all in one file. Says what nobody looks at.
"""

import io
import re
import sys
import tempfile
from pathlib import Path

import coverage
import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("core", "wire")
TESTS = ("tests/core", "tests/wire")
SLOW = "tests/core/machines"
"""Histories by dice: what only they come upon has no test that says it."""
AT_THE_DOOR = {
    "qmsup/core/scheduling": ("tests/core/scheduling/", "tests/core/stories/"),
    "qmsup/core/eviction": ("tests/core/eviction/test_conformance.py",),
}
IMPORTED = "^$"
"""The context of whatever runs before any test does."""


class Contexts:
    """Notes for each line by which test file it was run."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """From here on, this is whose lines they are."""
        measuring = coverage.Coverage.current()
        assert measuring is not None, "coverage is on"
        measuring.switch_context(item.path.relative_to(ROOT).as_posix())


def main() -> int:
    """Run the tests once, then look at each module through its own tests alone."""
    sys.path.insert(0, str(ROOT))
    with tempfile.TemporaryDirectory() as folder:
        measuring = coverage.Coverage(
            data_file=str(Path(folder) / "data"),
            config_file=str(ROOT / "pyproject.toml"),
            source=[f"qmsup.{package}" for package in PACKAGES],
        )
        measuring.start()
        code = pytest.main(
            ["-q", "-p", "no:cacheprovider", f"--ignore={SLOW}", *TESTS], [Contexts()]
        )
        measuring.stop()
        if code:
            return int(code)
        lacking = [said for module in _modules() if (said := _lacking(measuring, module))]
    print("\n".join(lacking) or "each module is covered by its own tests")
    return 1 if lacking else 0


def _modules() -> list[Path]:
    return sorted(
        module
        for package in PACKAGES
        for module in (ROOT / "qmsup" / package).rglob("*.py")
        if module.name != "__init__.py"
    )


def _lacking(measuring: coverage.Coverage, module: Path) -> str:
    """What a module's own tests leave out; "" = nothing."""
    tests = _own_tests(module.relative_to(ROOT))
    told = io.StringIO()
    covered = measuring.report(
        morfs=[str(module)],
        contexts=[IMPORTED, *(f"^{re.escape(test)}" for test in tests)],
        show_missing=True,
        file=told,
    )
    if covered == 100.0:
        return ""
    missing = next(line for line in told.getvalue().splitlines() if line.startswith("qmsup/"))
    return f"{missing}\n    by {', '.join(tests) or 'nothing'}"


def _own_tests(module: Path) -> list[str]:
    folder = "tests" / module.parent.relative_to("qmsup")
    own = [
        *(ROOT / folder).glob(f"test_{module.stem}.py"),
        *(ROOT / folder).glob(f"test_{module.stem}_*.py"),
    ]
    door = AT_THE_DOOR.get(module.parent.as_posix(), ())
    return [*(test.relative_to(ROOT).as_posix() for test in own), *door]


if __name__ == "__main__":
    sys.exit(main())
