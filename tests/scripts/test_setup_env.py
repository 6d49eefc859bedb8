"""The set-up script says in words what a box lacks, and does nothing twice. Nothing is downloaded here."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tree import ROOT


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "setup_env", tmp_path / "scripts")
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'nothing'\n")
    return tmp_path


def _set_up(checkout: Path, extras: str, python: Path | str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [checkout / "scripts" / "setup_env", extras],
        env=os.environ | {"PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=False,
    )


def _program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_an_old_python_is_named_with_how_to_get_a_newer_one(checkout: Path) -> None:
    old = _program(checkout / "python3.9", "exit 1")

    done = _set_up(checkout, "demo", old)

    assert done.returncode == 1
    assert f"{old} is missing or older than 3.11" in done.stderr
    assert "apt install python3 python3-venv" in done.stderr
    assert not (checkout / ".venv").exists()


def test_a_python_without_venv_is_named_with_the_package_that_has_it(checkout: Path) -> None:
    bare = _program(
        checkout / "python3", f'case "$2" in *ensurepip*) exit 1;; esac; exec {sys.executable} "$@"'
    )

    done = _set_up(checkout, "demo", bare)

    assert done.returncode == 1
    assert "apt install python3-venv" in done.stderr
    assert not (checkout / ".venv").exists()


@pytest.mark.parametrize("extras", ["demo", "test,demo", "demo,test"])
def test_what_is_installed_is_not_installed_again(checkout: Path, extras: str) -> None:
    digest = hashlib.sha256((checkout / "pyproject.toml").read_bytes()).hexdigest()
    (checkout / ".venv" / "bin").mkdir(parents=True)
    _program(checkout / ".venv" / "bin" / "python", "exit 1")
    (checkout / ".venv" / ".installed").write_text(f"{checkout} {digest}\ndemo,test\n")

    done = _set_up(checkout, extras, "no-python-is-needed")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.timeout(120)
def test_what_pip_cannot_install_is_told_with_its_words(checkout: Path) -> None:
    (checkout / "pyproject.toml").write_text("this is not TOML\n")

    done = _set_up(checkout, "demo", sys.executable)

    assert done.returncode == 1
    assert "pip failed" in done.stderr
    assert ".venv/install.log" in done.stderr
    assert not (checkout / ".venv" / ".installed").exists()
