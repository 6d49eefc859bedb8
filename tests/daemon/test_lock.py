import os
import subprocess
import sys
from pathlib import Path

import pytest

from qmsup.daemon.lock import LockedError, SchedulerLock


def test_the_second_holder_is_refused_and_told_whose_it_is(tmp_path: Path) -> None:
    lock = SchedulerLock(tmp_path / "scheduler.lock")

    with pytest.raises(LockedError, match=rf"pid {os.getpid()}\b.*QMSUP_STATE_DIR"):
        SchedulerLock(tmp_path / "scheduler.lock")
    lock.release()


def test_a_released_lock_can_be_had(tmp_path: Path) -> None:
    SchedulerLock(tmp_path / "scheduler.lock").release()

    SchedulerLock(tmp_path / "scheduler.lock").release()


def test_its_text_is_the_holder_s_pid_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.lock"
    path.write_text("12345678901234567890\n")

    SchedulerLock(path).release()

    assert path.read_text() == f"{os.getpid()}\n"


def test_a_lock_dies_with_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.lock"
    code = f"""
import os, signal
from pathlib import Path
from qmsup.daemon.lock import SchedulerLock
lock = SchedulerLock(Path({str(path)!r}))
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code], check=False)

    SchedulerLock(path).release()
