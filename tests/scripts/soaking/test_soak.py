"""The script as it is called."""

import subprocess
import sys

import pytest

from tests.support.tree import ROOT


def soak(*arguments: str, within: float = 50.0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "scripts.soaking", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=within,
        check=False,
    )


def test_a_round_that_finds_nothing_says_so() -> None:
    ran = soak("--minutes", "0", "--seed", "1", "--only", "EveryLifeEnds")

    assert (ran.returncode, ran.stderr) == (0, "")
    assert "soak: histories from seed 1 on" in ran.stdout
    assert " histories" in ran.stdout
    assert ran.stdout.endswith("soak: nothing was found\n")


def test_who_asks_for_what_there_is_not_is_told_what_there_is() -> None:
    ran = soak("--only", "luck")

    assert ran.returncode == 2
    assert "there is no luck, only dice, SchedulerMachine" in ran.stderr


@pytest.mark.parametrize("option", ["--minutes", "--seed", "--only", "--system", "--gpu"])
def test_its_options_are_told(option: str) -> None:
    assert option in soak("--help").stdout
