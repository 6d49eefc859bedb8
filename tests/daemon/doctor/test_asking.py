"""Programs that are run for a moment: none outlives the question."""

import os
import signal
from pathlib import Path

import pytest

from qmsup.daemon.doctor import asking
from qmsup.daemon.doctor.asking import Heard, hear
from qmsup.units import Seconds
from tests.support.children import is_alive, wait_until
from tests.support.doctoring import script


def test_what_it_says_on_both_outputs_is_heard() -> None:
    heard = hear(["sh", "-c", "echo one; echo two >&2; exit 3"], os.environ)

    assert heard == Heard(code=3, said="one\ntwo\n")


def test_one_that_does_not_end_is_ended_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "_WITHIN", Seconds(0.5))
    note = tmp_path / "pid"
    program = script(tmp_path / "x", f"#!/bin/sh\nsleep 60 & echo $! > {note}\necho begun\nwait\n")

    heard = hear([str(program)], os.environ)

    assert heard == Heard(code=None, said="begun\n")
    wait_until(lambda: not is_alive(int(note.read_text())))


def test_an_end_by_a_wrong_instruction_is_known_below_a_wrapper_too() -> None:
    itself = hear(["sh", "-c", "kill -ILL $$"], os.environ)
    below = hear(["sh", "-c", "sh -c 'kill -ILL $$'; exit $?"], os.environ)

    assert itself.code == -signal.SIGILL
    assert itself.died_of_its_instructions
    assert below.died_of_its_instructions
    assert not hear(["true"], os.environ).died_of_its_instructions
