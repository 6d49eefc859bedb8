import os
from collections.abc import Callable
from pathlib import Path

import pytest

from qmsup.errors import ChildError
from qmsup.processes import stop
from qmsup.processes.child import NONCE_VARIABLE, Child
from qmsup.processes.command import Launch
from qmsup.processes.stop_command import run_stop_command
from tests.support.children import running, wait_until


def launch_of(child: Child, *stop_argv: str) -> Launch:
    return Launch(
        argv=("sleep", "60"),
        env={NONCE_VARIABLE: child.record.nonce},
        host="127.0.0.1",
        port=1,
        nonce=child.record.nonce,
        proves_port=False,
        stop_argv=stop_argv,
    )


def test_it_knows_the_childs_pid_and_writes_into_its_log(places: Path) -> None:
    with running("sleep", "60") as child:
        launch = launch_of(child, "/bin/sh", "-c", "echo to end ${PID}; exit 3")
        command = run_stop_command(launch, child)

        wait_until(lambda: command.process.poll() is not None)

        assert command.close() == 3
        assert f"to end {child.pid}\n" in child.log.read_text()


def test_one_that_goes_on_ends_with_the_child(places: Path) -> None:
    with running("sleep", "60") as child:
        command = run_stop_command(launch_of(child, "/bin/sleep", "61"), child)

        wait_until(lambda: command.process.pid in stop.pids_of(child))
        assert command.close() is None
        assert command.process.pid not in stop.pids_of(child)


def test_one_that_cannot_be_run_is_named(places: Path) -> None:
    with running("sleep", "60") as child, pytest.raises(ChildError, match="cmdStop /no/such could"):
        run_stop_command(launch_of(child, "/no/such"), child)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_log_that_cannot_be_written_keeps_it_from_telling_not_from_working(
    places: Path, make: Callable[[Path], None]
) -> None:
    with running("sleep", "60") as child:
        child.log.unlink()
        make(child.log)
        command = run_stop_command(launch_of(child, "/bin/echo", "ended"), child)

        wait_until(lambda: command.process.poll() is not None)
        assert command.close() == 0
