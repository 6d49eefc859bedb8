"""`qmsup top` against a real scheduler: once, as text, and on a terminal."""

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control.conftest import Run
from tests.support.scheduler_actor import QUICK, RunningScheduler, models_of, scheduler_of


@pytest.fixture
def running(places: Path) -> Iterator[RunningScheduler]:
    with scheduler_of(models_of(QUICK), places) as scheduler:
        yield scheduler


def test_one_look_is_printed_as_text(running: RunningScheduler, qmsup: Run) -> None:
    running.worker().takes_up("r-1")

    ended = qmsup("top", "--once")

    assert ended.code == 0
    assert "MODEL" in ended.out
    assert "swap.started m" in ended.out
    assert "\x1b" not in ended.out


@pytest.mark.usefixtures("places")
def test_without_a_scheduler_it_says_so(qmsup: Run) -> None:
    assert qmsup("top", "--once").code == 3


def test_on_a_terminal_it_is_drawn_anew_until_q(running: RunningScheduler) -> None:
    inside, outside = pty.openpty()
    command = [sys.executable, "-m", "qmsup", "top"]
    with subprocess.Popen(command, stdin=outside, stdout=outside, stderr=outside) as top:
        os.close(outside)
        _read_until(inside, b"stopped")
        running.worker().takes_up("r-1")
        _read_until(inside, b"swap.done")
        os.write(inside, b"q")
        _drain(inside)
        assert top.wait(30) == 0
    os.close(inside)


def _read_until(fd: int, wanted: bytes) -> None:
    seen = b""
    deadline = time.monotonic() + 30
    while wanted not in seen:
        assert time.monotonic() < deadline, seen
        if select.select([fd], [], [], 0.1)[0]:
            seen += os.read(fd, 65536)


def _drain(fd: int) -> None:
    """A terminal's other end that is not read blocks who writes."""
    try:
        while select.select([fd], [], [], 5)[0] and os.read(fd, 65536):
            pass
    except OSError:  # the program has closed it
        pass
