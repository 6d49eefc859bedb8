"""A short soak of a whole box: kills under load, and after each round everything is as before."""

import subprocess
import sys

import pytest

from tests.support.tree import ROOT

pytestmark = pytest.mark.system


@pytest.mark.timeout(150)
def test_a_box_whose_parts_are_killed_under_load_leaves_nobody_and_nothing_behind() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "scripts.soaking", "--system", "--seed", "166", "--minutes", "0.4"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=140,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "killed worker" in ran.stdout
    assert "killed scheduler" in ran.stdout
