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


def test_what_it_leaves_behind_is_not_waited_for_and_ends_too(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    away = f"setsid sh -c 'echo $$ > {note}; exec sleep 60' &"
    program = script(
        tmp_path / "x", f"#!/bin/sh\n{away}\nwhile [ ! -s {note} ]; do :; done\necho 'version: 7'\n"
    )

    assert hear([str(program)], os.environ) == Heard(code=0, said="version: 7\n")

    wait_until(lambda: not is_alive(int(note.read_text())))


def test_one_that_says_things_without_end_is_heard_for_a_while() -> None:
    heard = hear(["yes", "garbage"], os.environ)

    assert heard.code is None
    assert len(heard.said) <= 64 * 1024
    assert heard.said.startswith("garbage\n")


def test_one_that_has_nothing_more_to_say_and_stays_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asking, "_WITHIN", Seconds(0.5))

    heard = hear(["sh", "-c", "echo this; exec sleep 60 >&- 2>&-"], os.environ)

    assert heard == Heard(code=None, said="this\n")


def test_an_end_by_a_wrong_instruction_is_known_below_a_wrapper_too() -> None:
    itself = hear(["sh", "-c", "kill -ILL $$"], os.environ)
    below = hear(["sh", "-c", "sh -c 'kill -ILL $$'; exit $?"], os.environ)

    assert itself.code == -signal.SIGILL
    assert itself.died_of_its_instructions
    assert below.died_of_its_instructions
    assert not hear(["true"], os.environ).died_of_its_instructions


@pytest.mark.parametrize(
    ("code", "ended_by"),
    [
        (0, None),
        (1, None),
        (None, None),
        (128, None),
        (255, None),
        (-11, signal.SIGSEGV),
        (139, signal.SIGSEGV),
    ],
)
def test_the_signal_that_ended_one_is_told_by_its_code(
    code: int | None, ended_by: signal.Signals | None
) -> None:
    assert Heard(code=code, said="").ended_by is ended_by
