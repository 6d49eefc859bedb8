"""A short run of `scripts/soak --gpu`: games and gaps around a card, and no load that dies of what could be known."""

import subprocess
import sys

import pytest

from tests.support.gpu import fake_library
from tests.support.tree import ROOT

pytestmark = pytest.mark.system


@pytest.mark.timeout(150)
def test_whatever_games_take_no_load_dies_of_memory_that_could_be_known_of() -> None:
    fake_library()
    ran = subprocess.run(
        [sys.executable, "-m", "scripts.soaking", "--gpu", "--seed", "107", "--minutes", "0"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=140,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    for what in (" games", " the driver gone"):
        assert what in ran.stdout
    assert " answered 200" in ran.stdout
