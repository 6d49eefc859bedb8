"""Whether a scheduler works on these folders."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from qmsup import places as where
from qmsup.daemon.doctor.box import Box
from qmsup.daemon.doctor.running import look, name_of, scheduler_pid
from tests.support.doctoring import graded


def test_none_runs_where_there_is_no_lock(places: Path) -> None:
    assert graded(look(Box())) == [("ok", "none")]
    assert scheduler_pid() is None


def test_the_one_that_is_named_in_the_lock_runs_if_it_is_one(places: Path) -> None:
    where.make_private(where.state_dir())
    command = [sys.executable, "-c", "input()", "qmsup", "scheduler"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        where.lock_file().write_text(f"{process.pid}\n")

        assert graded(look(Box())) == [("ok", f"pid {process.pid}")]
        assert scheduler_pid() == process.pid
        assert "input()" in name_of(process.pid)
        process.kill()
    assert scheduler_pid() is None
    where.lock_file().write_text("1\n")  # somebody else's by now
    assert scheduler_pid() is None
    assert name_of(2**22 + 1) == "unknown"


def test_a_socket_that_was_left_behind_is_told(places: Path) -> None:
    where.make_private(where.runtime_dir())
    path = where.scheduler_socket()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(os.fspath(path))

    assert graded(look(Box())) == [("warn", str(path))]
