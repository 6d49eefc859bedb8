"""A short run of `scripts/soak --system`: everything that can be done to a box, once at the least, and nothing lost."""

import os
import subprocess
import sys

import pytest

from tests.support.tree import ROOT

pytestmark = pytest.mark.system


@pytest.mark.timeout(240)
def test_whatever_is_done_to_a_box_under_load_leaves_nobody_and_nothing_behind() -> None:
    words = ["--system", "--seed", "21", "--minutes", "0", "--longest", "2.5"]
    ran = subprocess.run(
        [sys.executable, "-m", "scripts.soaking", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=220,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    for what in ("killed ", "frozen ", "messages muddled", "port stolen"):
        assert what in ran.stdout
    assert "disk filled" in ran.stdout or os.geteuid() != 0  # root alone may mount one
