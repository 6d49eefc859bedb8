"""A test stands where its module stands: qmsup/wire/codec.py is tested by tests/wire/test_codec.py.

Where several modules are one thing with one door, the tests stand at the door; the list says so.
"""

import ast
from pathlib import Path

from tests.support.tree import ROOT, modules

# Modules or packages without tests of their own name → where their tests are, and why there.
TESTED_AT_THE_DOOR = {
    # The scheduler is entered by `handle` alone; its parts are told apart by what it answers.
    "qmsup/core/scheduling": "tests/core",
    # A verb is what a person types: over the real program, and a real socket.
    "qmsup/control/commands": "tests/control/test_verbs.py",
    "qmsup/control/options.py": "tests/control/test_command_line.py",
    # `load` is the door of config; one file in, one Spec or a list of problems out.
    "qmsup/config": "tests/config/test_loading.py",
    # What a model's program is like: each answers the same questions.
    "qmsup/processes/backends": "tests/processes/backends/test_meanings.py",
    # What a probe asks for and how its answer is judged.
    "qmsup/upstream/readiness.py": "tests/upstream/test_probe.py",
    # Two ends of one conversation.
    "qmsup/transport": "tests/transport/test_sockets.py",
    # Werkzeug's side of a listener: a request in, an answer or an order to the relay out.
    "qmsup/listener": "tests/listener/test_app.py",
    # Assembly: what it does shows when everything runs.
    "qmsup/daemon/commands": "tests/daemon",
    "qmsup/actors": "tests/system",
    "qmsup/__main__.py": "tests/control/test_command_line.py",
}


def test_every_module_has_a_test_file_or_stands_behind_a_door_that_has() -> None:
    lacking = [str(module) for module in _lacking() if _door_of(module) is None]

    assert not lacking, "no test file for:\n" + "\n".join(lacking)


def test_every_door_is_there_and_leads_somewhere() -> None:
    used = {_door_of(module) for module in _lacking()}

    unused = [inside for inside in TESTED_AT_THE_DOOR if inside not in used]
    gone = [door for door in TESTED_AT_THE_DOOR.values() if not (ROOT / door).exists()]
    assert (unused, gone) == ([], [])


def _lacking() -> list[Path]:
    return [module for module in modules() if _does_something(module) and not _tests(module)]


def _door_of(module: Path) -> str | None:
    """The nearest entry of the list that the module is or lies directly in."""
    return next((d for d in (str(module), str(module.parent)) if d in TESTED_AT_THE_DOOR), None)


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
