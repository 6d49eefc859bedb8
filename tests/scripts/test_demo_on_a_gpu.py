"""`scripts/demo --gpu`: a card that is not there, a game, and models that make room for it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.gpu import fake_library
from tests.support.tree import ROOT

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]


def test_models_make_room_for_a_game_and_come_back_after_it(tmp_path: Path) -> None:
    fake_library()

    done = subprocess.run(
        [sys.executable, "-m", "scripts.demonstration", "--gpu", "--folder", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert re.findall(r"may (?:now )?use ([\d.]+) GB", said) == ["24.0", "15.0", "24.0"]
    assert re.search(r"swap\.started +model=charlie.* evicts=alpha", said)
    shares = [line.partition(": ")[2] for line in said.splitlines() if "on the card" in line]
    assert shares[-1] == "desktop 0.5, free 23.5"
    assert shares[-2] == "alpha 6, bravo 6, charlie 6, desktop 0.5, free 5.5"
