"""The demo as a newcomer runs it, but for the installation: these tests have that behind them."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tree import ROOT

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]


def _demo(folder: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "scripts.demonstration", "--folder", folder, *more],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_two_models_take_turns_in_one_budget(tmp_path: Path) -> None:
    with _demo(tmp_path) as demo:
        said = demo.stdout.read() if demo.stdout else ""

    assert demo.returncode == 0, said
    assert re.findall(r"(alpha|bravo) (had to be loaded|was ready)", said) == [
        ("alpha", "had to be loaded"),
        ("bravo", "had to be loaded"),
        ("alpha", "had to be loaded"),
        ("alpha", "was ready"),
    ]
    assert re.search(r"swap\.started +model=bravo.* evicts=alpha", said)
    assert re.search(r"swap\.started +model=alpha.* evicts=bravo", said)
    assert "no process is left, and both ports are free" in said


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_stays_until_it_is_told_to_go(tmp_path: Path, how: signal.Signals) -> None:
    with _demo(tmp_path, "--stay") as demo:
        assert demo.stdout
        lines = iter(demo.stdout.readline, "")
        curl = next(line.strip() for line in lines if line.strip().startswith("curl "))
        answer = subprocess.run(curl, shell=True, capture_output=True, text=True, check=False)
        demo.send_signal(how)
        rest = demo.stdout.read()

    assert "data: [DONE]" in answer.stdout, answer.stderr
    assert demo.returncode == 0, rest
    assert "no process is left, and both ports are free" in rest


def test_two_demos_in_one_folder_are_one_too_many(tmp_path: Path) -> None:
    with _demo(tmp_path, "--stay") as first:
        assert first.stdout
        next(line for line in iter(first.stdout.readline, "") if "It stays" in line)
        with _demo(tmp_path) as second:
            said = second.stdout.read() if second.stdout else ""
        first.send_signal(signal.SIGINT)
        first.stdout.read()

    assert second.returncode == 1
    assert f"another demo is using {tmp_path}" in said
