"""What README tells people to type exists."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tree import ROOT

README = (ROOT / "README.md").read_text()
SCRIPTS = sorted(set(re.findall(r"(?<![\w/])scripts/\w+\b(?!\.)", README)))
LINKS = sorted(set(re.findall(r"\]\((?!https?:|#)([^)#]+)", README)))
VERBS = sorted(set(re.findall(r"^\$? *qmsup (\w+)", README, re.MULTILINE)))


def test_the_two_commands_are_told() -> None:
    assert {"scripts/demo", "scripts/test"} <= set(SCRIPTS)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_exists_and_can_be_run(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)


@pytest.mark.parametrize("target", LINKS)
def test_a_link_leads_somewhere(target: str) -> None:
    assert (ROOT / target).exists()


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_one_of_the_program(verb: str) -> None:
    asked = [sys.executable, "-m", "qmsup", verb, "--help"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("config", re.findall(r"```yaml\n(.+?)```", README, re.DOTALL))
def test_a_configuration_shown_is_one_that_works(config: str, tmp_path: Path) -> None:
    file = tmp_path / "qmsup.yaml"
    file.write_text(config)

    asked: list[str | Path] = [sys.executable, "-m", "qmsup", "check", file]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
