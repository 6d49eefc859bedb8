"""A script that is asked what it does says it, and does nothing."""

import subprocess

import pytest

from tests.support.tree import ROOT


def run(script: str, argument: str) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / "scripts" / script), argument]
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)


@pytest.mark.parametrize("argument", ["-h", "--help"])
@pytest.mark.parametrize("script", ["check", "fix", "setup_env", "test"])
def test_it_says_what_it_does_and_ends(script: str, argument: str) -> None:
    said = run(script, argument)

    first = (ROOT / "scripts" / script).read_text().splitlines()[1]
    assert said.returncode == 0
    assert said.stdout.splitlines()[0] == first.removeprefix("# ")
    assert "set -" not in said.stdout


@pytest.mark.parametrize("script", ["check", "fix"])
def test_what_takes_no_arguments_says_so_instead_of_passing_them_over(script: str) -> None:
    said = run(script, "--quick")

    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr == f"scripts/{script} takes no arguments\n"
