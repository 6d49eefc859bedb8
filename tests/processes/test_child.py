import os
import signal
import sys
from pathlib import Path

import pytest

from qmsup.processes.child import Child, Exit
from tests.support.children import running


def ended(child: Child) -> Exit | None:
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    return child.exit()


def test_one_that_runs_has_no_exit(places: Path) -> None:
    with running("sleep", "60") as child:
        assert child.exit() is None


def test_an_exit_code_is_told_as_often_as_is_asked(places: Path) -> None:
    with running(sys.executable, "-c", "exit(3)") as child:
        assert ended(child) == child.exit() == Exit(code=3)


def test_a_signal_is_told_by_name(places: Path) -> None:
    with running("sleep", "60") as child:
        os.kill(child.pid, signal.SIGILL)

        assert ended(child) == Exit(signal=signal.SIGILL)


def test_an_end_that_somebody_else_waited_for_is_an_end(places: Path) -> None:
    with running(sys.executable, "-c", "") as child:
        os.waitpid(child.pid, 0)

        assert child.exit() == Exit()


def test_one_let_go_runs_on(places: Path) -> None:
    with running("sleep", "60") as child:
        child.let_go()

        assert child.exit() is None
        os.kill(child.pid, signal.SIGKILL)
        os.waitpid(child.pid, 0)


@pytest.mark.parametrize(
    ("exit_", "words"),
    [
        (Exit(code=1), "exited with code 1"),
        (Exit(signal=11), "was killed by SIGSEGV"),
        (Exit(signal=37), "was killed by signal 37"),
        (Exit(), "ended (its exit code is not known)"),
    ],
)
def test_an_exit_is_told_in_words(exit_: Exit, words: str) -> None:
    assert exit_.words == words
