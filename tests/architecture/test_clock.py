"""What lasts, waits or is due is measured by a clock that nobody sets: the wall clock may jump by hours."""

import ast
from pathlib import Path

from tests.support.tree import ROOT, modules

# Modules that read the wall clock → what for. None of it decides when something happens in one life of a process.
WALL_CLOCK = {
    "qmsup/actors/activity_table.py": "people see when",
    "qmsup/actors/chronicle.py": "the journal's readers see when",
    "qmsup/actors/feed.py": "subscribers see when",
    "qmsup/actors/footprints.py": "when a size was measured outlives the scheduler, and its machine",
    "qmsup/actors/mishaps.py": "a person sees when",
    "qmsup/actors/job_book.py": "when a job ended outlives the scheduler",
    "qmsup/actors/job_rounds.py": "the same",
    "qmsup/actors/scheduler.py": "the same",
    "qmsup/control/commands/status.py": "a person sees since when",
    "qmsup/control/commands/top.py": "a person sees how long",
    "qmsup/control/polled.py": "changes seen from afar are dated for people",
    "qmsup/daemon/main.py": "a person sees since when",
    "qmsup/listener/pages.py": "clients see `created`",
    "qmsup/listener/refused.py": "the activity's readers see when",
    "qmsup/listener/relay/account.py": "the access log's readers see when",
}


def test_the_wall_clock_is_read_for_people_only() -> None:
    found = {str(module) for module in modules() if _reads_wall_clock(module)}

    assert found - set(WALL_CLOCK) - _simulation() == set()
    assert {module for module in WALL_CLOCK if (ROOT / module).exists()} - found == set()


def _simulation() -> set[str]:
    return {str(module) for module in modules() if "simulation" in module.parts}


def _reads_wall_clock(module: Path) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id, node.attr)
        in {("time", "time"), ("time", "time_ns"), ("datetime", "now")}
        for node in ast.walk(ast.parse((ROOT / module).read_text()))
    )
