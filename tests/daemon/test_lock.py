import os
import subprocess
import sys
from pathlib import Path

import pytest

from qmsup import places as where
from qmsup.daemon.lock import LockedError, SchedulerLock, see_that_nobody_holds


def test_the_second_holder_is_refused_and_told_whose_it_is(tmp_path: Path) -> None:
    lock = SchedulerLock(tmp_path / "scheduler.lock")

    with pytest.raises(LockedError, match=rf"pid {os.getpid()}\b.*QMSUP_STATE_DIR"):
        SchedulerLock(tmp_path / "scheduler.lock")
    lock.release()


def test_who_only_looks_is_told_the_same_and_takes_nothing(places: Path) -> None:
    where.make_private(where.state_dir())
    see_that_nobody_holds()
    assert list(where.state_dir().iterdir()) == []
    lock = SchedulerLock(where.lock_file())

    for _ in range(2):
        with pytest.raises(
            LockedError, match=rf"pid {os.getpid()}\) uses {where.state_dir()} since 20\d\d-"
        ):
            see_that_nobody_holds()

    lock.release()
    see_that_nobody_holds()
    SchedulerLock(where.lock_file()).release()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "scheduler.lock").symlink_to("precious")

    with pytest.raises(OSError, match="symbolic links"):
        SchedulerLock(tmp_path / "scheduler.lock")

    assert (tmp_path / "precious").read_text() == "precious"


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
