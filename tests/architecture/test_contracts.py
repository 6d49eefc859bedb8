"""Who may import whom: setup.cfg says, import-linter checks."""

import subprocess
import sys
from pathlib import Path

from tests.support.tree import ROOT

LINT = Path(sys.executable).with_name("lint-imports")


def test_the_import_contracts_hold() -> None:
    done = subprocess.run(
        [LINT, "--no-logo", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
