"""What dead parts of `serve` leave to it. In processes of their own, as who inherits is for a whole process to say."""

import subprocess
import sys
from pathlib import Path

from qmsup import places as where
from qmsup.daemon.lock import SchedulerLock
from qmsup.daemon.orphans import stop_models
from qmsup.units import Seconds

REAPS = """
import os, signal, subprocess, time
from qmsup.daemon.orphans import reap, take_over_orphans
take_over_orphans()
reap(())  # there is nobody
own = subprocess.Popen(["sleep", "60"])
leaves = subprocess.run(["sh", "-c", "sleep 60 >&- & echo $!"], stdout=subprocess.PIPE, check=True)
orphan = int(leaves.stdout)
assert os.stat(f"/proc/{orphan}")
reap({own.pid})
for pid in (orphan, own.pid):
    os.kill(pid, signal.SIGTERM)
os.waitid(os.P_PID, own.pid, os.WEXITED | os.WNOWAIT)
os.waitid(os.P_PID, orphan, os.WEXITED | os.WNOWAIT)
assert own.wait() == -signal.SIGTERM
reap(())
assert not os.path.exists(f"/proc/{orphan}")
"""

LEAVES_ITS_OWN = """
import os, signal, subprocess
from qmsup.daemon.orphans import reap
own = subprocess.Popen(["true"])
os.waitid(os.P_PID, own.pid, os.WEXITED | os.WNOWAIT)
reap({own.pid})
assert own.wait() == 0
"""


def _run(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


def test_whoever_is_left_is_taken_over_and_reaped() -> None:
    _run(REAPS)


def test_somebody_s_own_child_is_left_to_him() -> None:
    _run(LEAVES_ITS_OWN)


def test_models_of_another_scheduler_are_left_alone(places: Path) -> None:
    where.make_private(where.state_dir())
    lock = SchedulerLock(where.lock_file())
    before = sorted(where.state_dir().iterdir())

    stop_models(Seconds(0.1))

    assert sorted(where.state_dir().iterdir()) == before
    lock.release()
