import json
import resource
import subprocess
import sys

from qmsup import open_files

SHOW = """
import json, resource, subprocess, sys
from qmsup import open_files
before = resource.getrlimit(resource.RLIMIT_NOFILE)
said = open_files.raise_limit()
after = resource.getrlimit(resource.RLIMIT_NOFILE)
child = subprocess.Popen(["sleep", "60"])
open_files.hand_down(child.pid)
theirs = resource.prlimit(child.pid, resource.RLIMIT_NOFILE)
child.kill()
child.wait()
print(json.dumps([before, said, after, theirs]))
"""


def test_a_process_takes_all_it_may_have_and_its_programs_what_it_had_itself() -> None:
    command = f"ulimit -Sn 500; ulimit -Hn 3000; exec {sys.executable} -c '{SHOW}'"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)

    before, said, after, theirs = json.loads(ran.stdout)
    assert before == theirs == [500, 3000]
    assert said == 3000
    assert after == [3000, 3000]


def test_nobody_gets_more_than_a_fourth() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert open_files.at_most(2) == 2
    assert open_files.at_most(2 * soft) == soft // 4


def test_a_failure_for_want_of_a_descriptor_is_known() -> None:
    assert open_files.is_used_up(OSError(24, "Too many open files"))
    assert not open_files.is_used_up(OSError(28, "No space left on device"))
    assert not open_files.is_used_up(None)
