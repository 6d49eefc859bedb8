"""All looks together: the verb as people type it, its exit code, and a look that fails."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmsup.daemon.doctor.box import Box
from qmsup.daemon.doctor.examination import box_of, examine
from qmsup.daemon.doctor.finding import Check, Finding
from tests.support.children import FIRST_PORT
from tests.support.doctoring import graded, script
from tests.support.servers import free_port


def config_in(folder: Path, command: str) -> Path:
    file = folder / "qmsup.yaml"
    document = {
        "listeners": {"main": {"bind": f"127.0.0.1:{free_port()}"}},
        "models": {"m": {"cmd": command, "kind": "generic"}},
        "startPort": FIRST_PORT,
    }
    file.write_text(json.dumps(document))
    return file


def doctor(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "qmsup", "doctor", *arguments],
        env={name: value for name, value in os.environ.items() if name != "QMSUP_CONFIG"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_good_box_ends_with_0_and_nothing_was_made(places: Path, tmp_path: Path) -> None:
    program = script(tmp_path / "server", "#!/bin/sh\n")

    ran = doctor("-c", config_in(tmp_path, f"{program} --port ${{PORT}}"))

    assert ran.returncode == 0, ran.stdout
    assert ran.stdout.splitlines()[-1].startswith("0 bad, ")
    assert [*places.iterdir()] == []


def test_something_bad_ends_with_1_and_says_what_to_do(places: Path, tmp_path: Path) -> None:
    file = config_in(tmp_path, "/no/such/server --port ${PORT}")

    table, document = doctor("-c", file), doctor("-c", file, "--json")

    assert (table.returncode, document.returncode) == (1, 1)
    lines = table.stdout.splitlines()
    [at] = [n for n, line in enumerate(lines) if line.startswith("bad")]
    assert "/no/such/server" in lines[at]
    assert lines[at + 1].strip().startswith("-> install it")
    told = json.loads(document.stdout)
    assert told["ok"] is False
    [bad] = [finding for finding in told["findings"] if finding["grade"] == "bad"]
    assert bad.keys() == {"check", "about", "grade", "says", "do"}


@pytest.mark.parametrize("text", ["models: {m: {cmdd: x}}", None])
def test_a_configuration_that_cannot_be_used_ends_with_2(
    places: Path, tmp_path: Path, text: str | None
) -> None:
    file = tmp_path / "qmsup.yaml"
    if text is not None:
        file.write_text(text)

    ran = doctor("-c", file)

    assert ran.returncode == 2
    assert "bad   configuration" in ran.stdout
    assert "limits" in ran.stdout, "the box is looked at all the same"


def test_without_a_configuration_the_box_is_looked_at(places: Path) -> None:
    ran = doctor()

    assert ran.returncode == 0
    assert "no configuration was named" in ran.stdout


def test_a_look_that_fails_stops_no_other() -> None:
    def breaks(_box: Box) -> Iterator[Finding]:
        yield Check("x").ok("first", "well")
        raise RuntimeError("odd box")

    def goes_on(_box: Box) -> Iterator[Finding]:
        yield Check("y").ok("second", "well")

    found = list(examine(Box(), (breaks, goes_on)))

    assert graded(found) == [("ok", "first"), ("warn", "the look itself"), ("ok", "second")]
    assert "odd box" in found[1].says


def test_a_box_knows_its_configuration_or_what_is_wrong_with_it(tmp_path: Path) -> None:
    assert box_of(None) == Box()
    assert box_of(config_in(tmp_path, "server --port ${PORT}")).spec is not None
    assert box_of(config_in(tmp_path, "server")).remarks == 1  # it names no port
    assert box_of(tmp_path / "none").problems
