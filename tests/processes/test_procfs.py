import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from qmsup.processes import procfs
from tests.support.children import wait_until
from tests.support.descriptors import no_descriptor_left


def test_a_process_is_described() -> None:
    stat = procfs.stat_of(os.getpid())

    assert stat is not None
    assert (stat.pid, stat.parent, stat.session) == (os.getpid(), os.getppid(), os.getsid(0))
    assert stat.is_alive
    assert stat in [s if s.pid != os.getpid() else stat for s in procfs.all_stats()]


def test_a_thread_is_no_process() -> None:
    ends = threading.Event()
    thread = threading.Thread(target=ends.wait)
    thread.start()
    try:
        assert thread.native_id is not None
        assert Path(f"/proc/{thread.native_id}/stat").exists(), "though it has a number of its own"
        assert procfs.stat_of(thread.native_id) is None
        assert list(procfs.all_stats(range(thread.native_id, thread.native_id + 1))) == []
    finally:
        ends.set()
        thread.join()


def test_a_zombie_is_there_and_not_alive() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    stat = procfs.stat_of(process.pid)

    assert stat is not None
    assert not stat.is_alive
    process.wait()
    assert procfs.stat_of(process.pid) is None
    assert not procfs.has_in_environ(process.pid, "A=1")
    assert procfs.socket_inodes(process.pid) == frozenset()


def test_a_name_full_of_parentheses_does_not_confuse() -> None:
    rename = "import ctypes;ctypes.CDLL(None).prctl(15,b') Z 1 (',0,0,0)"
    code = f"{rename};print(flush=True);input()"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        stat = procfs.stat_of(process.pid)
        process.communicate(b"\n")

    assert stat is not None
    assert stat.is_alive
    assert stat.parent == os.getpid()


def test_what_a_process_was_started_with_is_found_whole() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env={"QMSUP_CHILD": "abc"}
    ) as process:
        # A process in the middle of its exec has none for a moment.
        wait_until(lambda: procfs.has_in_environ(process.pid, "QMSUP_CHILD=abc"))
        assert not procfs.has_in_environ(process.pid, "QMSUP_CHILD=ab")
        process.communicate(b"\n")


def test_sockets_are_found_by_their_inode() -> None:
    with socket.socket() as one:
        inode = str(os.fstat(one.fileno()).st_ino)
        assert inode in procfs.socket_inodes(os.getpid())
    assert inode not in procfs.socket_inodes(os.getpid())


def test_how_old_a_process_is_counts_from_its_start() -> None:
    own = procfs.stat_of(os.getpid())
    assert own is not None

    age = procfs.age_of(own.start_ticks)

    assert age == pytest.approx(time.time() - psutil.Process().create_time(), abs=2.0)
    assert procfs.age_of(2**60) == 0.0


def test_a_boot_has_a_name() -> None:
    assert procfs.boot_id() == procfs.boot_id() != ""


def test_the_pid_given_away_last_is_a_new_ones() -> None:
    before = procfs.last_pid()
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()

    assert before is not None
    assert before < process.pid <= (procfs.last_pid() or 0)


def test_what_is_started_after_a_process_has_a_pid_that_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(procfs, "pid_max", lambda: 2**22)
    with subprocess.Popen(["sleep", "60"]) as first, subprocess.Popen(["sleep", "60"]) as second:
        stat = procfs.stat_of(first.pid)
        assert stat is not None
        since = procfs.pids_since(first.pid, stat.start_ticks)
        monkeypatch.setattr(procfs, "pid_max", lambda: 0)  # as if they could start anew in no time
        unknown = procfs.pids_since(first.pid, stat.start_ticks)
        for process in (first, second):
            process.kill()

    assert since is not None
    assert {first.pid, second.pid} <= set(since)
    assert os.getpid() not in since
    assert unknown is None


def test_where_no_pid_is_told_none_is_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(procfs, "_PROC", tmp_path)

    assert procfs.last_pid() is None
    assert procfs.pids_since(1, 0) is None


def test_without_a_descriptor_nothing_is_said_to_be_gone() -> None:
    with no_descriptor_left():
        assert procfs.stat_of(os.getpid()) is None
        with pytest.raises(OSError, match="Too many open files"):
            procfs.read_stat(os.getpid())
        with pytest.raises(OSError, match="Too many open files"):
            procfs.has_in_environ(os.getpid(), "A=b")
        with pytest.raises(OSError, match="Too many open files"):
            procfs.socket_inodes(os.getpid())
