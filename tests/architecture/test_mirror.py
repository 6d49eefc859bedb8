"""A test stands where its module stands: qmsup/core/spec.py is tested by tests/core/test_spec.py."""

import ast
from pathlib import Path

from tests.support.tree import ROOT, modules

# Modules without a test file of their own, and why that is right.
NO_TEST_OF_ITS_OWN = {
    "qmsup/__main__.py": "one call; every test of the command line goes through it",
}


def test_every_module_has_a_test_file_or_a_reason() -> None:
    lacking = [
        str(module) for module in modules() if _does_something(module) and not _tests(module)
    ]

    lacking = [name for name in lacking if name not in NO_TEST_OF_ITS_OWN]
    assert not lacking, "no test file for:\n" + "\n".join(lacking)


def test_reasons_are_not_stale() -> None:
    stale = [
        name for name in NO_TEST_OF_ITS_OWN if not (ROOT / name).exists() or _tests(Path(name))
    ]

    assert stale == []


def _tests(module: Path) -> list[Path]:
    """tests/x/test_name.py, or several: tests/x/test_name_when_full.py. A package's is tests/x/test_x.py."""
    name = module.parent.name if module.name == "__init__.py" else module.stem
    folder = ROOT / "tests" / module.parent.relative_to("qmsup")
    return [
        *folder.glob(f"test_{name.strip('_')}.py"),
        *folder.glob(f"test_{name.strip('_')}_*.py"),
    ]


def _does_something(module: Path) -> bool:
    """False for a module of names, constants and plain values: nothing is defined in it that runs."""
    tree = ast.parse((ROOT / module).read_text())
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in ast.walk(tree))
