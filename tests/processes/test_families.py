"""Which processes came from which child, whatever stands between them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmsup.processes import procfs
from qmsup.processes.child import Child
from qmsup.processes.families import Families
from qmsup.processes.procfs import stat_of
from tests.support.children import running, wait_until
from tests.support.descriptors import no_descriptor_left

HOLD = """
import os, sys, time
block = b"x" * 2**26
with open(sys.argv[1] + "~", "w") as file:
    file.write(str(os.getpid()))
os.rename(sys.argv[1] + "~", sys.argv[1])
time.sleep(60)
"""
MIB = 2**20
STARTERS = {
    "the child itself": "exec {hold}",
    "a program of a script": "{hold}; true",
    "in a session of its own": "setsid {hold}; true",
    "whose parents have gone": "(setsid {hold} &) ; sleep 60",
    "without the child's environment": "env -i {hold}; true",
}


@pytest.fixture(params=STARTERS.values(), ids=list(STARTERS))
def holder(
    request: pytest.FixtureRequest, tmp_path: Path, places: Path
) -> Iterator[tuple[Child, int]]:
    """A child, and the pid of the process that holds 64 MiB for it."""
    program, told = tmp_path / "hold.py", tmp_path / "pid"
    program.write_text(HOLD)
    command = request.param.format(hold=f"{sys.executable} -S {program} {told}")
    with running("/bin/sh", "-c", command) as child:
        wait_until(told.exists)
        yield child, int(told.read_text())


def test_a_process_is_its_childs(holder: tuple[Child, int]) -> None:
    child, pid = holder
    families = Families()
    families.keep_only([child.pid])

    assert families.owner_of(pid) == child.pid
    assert families.owner_of(pid) == child.pid
    assert {child.pid, pid} <= set(families.pids())

    use = families.use_of(child.pid)
    assert use is not None
    assert 64 * MIB < use.private <= use.resident < 200 * MIB


@pytest.mark.parametrize("is_young", [True, False])
def test_a_walk_finds_what_nobody_named(
    tmp_path: Path, places: Path, monkeypatch: pytest.MonkeyPatch, is_young: bool
) -> None:
    monkeypatch.setattr(procfs, "pid_max", lambda: 2**22 if is_young else 0)
    program, told = tmp_path / "hold.py", tmp_path / "pid"
    program.write_text(HOLD)
    command = f"{sys.executable} -S {program} {told}; true"
    with running("/bin/sh", "-c", f"/bin/sh -c '{command}'; true") as child:
        wait_until(told.exists)
        families = Families()
        families.keep_only([child.pid])
        assert families.pids() == (child.pid,)

        families.look_around()

        assert int(told.read_text()) in families.pids()
        assert os.getpid() not in families.pids()


def test_strangers_are_nobodys(places: Path) -> None:
    families = Families()
    families.look_around()
    with subprocess.Popen(["sleep", "60"]) as stranger, running("sleep", "60") as child:
        families.keep_only([child.pid])
        assert families.owner_of(stranger.pid) is None
        assert families.owner_of(stranger.pid) is None
        assert families.owner_of(1) is None
        assert families.owner_of(2**30) is None
        assert families.use_of(stranger.pid) is None
        stranger.kill()

    assert families.owner_of(child.pid) is None


def test_a_stranger_may_prove_to_be_of_a_child_named_later(places: Path) -> None:
    families = Families()
    with running("sleep", "60") as child:
        assert families.owner_of(child.pid) is None

        families.keep_only([child.pid])

        assert families.owner_of(child.pid) == child.pid
        families.keep_only([])
        assert families.owner_of(child.pid) is None
        assert families.pids() == ()


def test_who_has_gone_uses_nothing(tmp_path: Path, places: Path) -> None:
    told = tmp_path / "pid"
    script = f"sleep 60 & echo $! > {told}~; mv {told}~ {told}; wait; sleep 60"
    with running("/bin/sh", "-c", script) as child:
        wait_until(told.exists)
        member = int(told.read_text())
        families = Families()
        families.keep_only([child.pid])
        assert families.owner_of(member) == child.pid
        os.kill(member, 9)
        wait_until(lambda: stat_of(member) is None)

        assert families.use_of(child.pid) is not None

        assert families.pids() == (child.pid,)
        os.kill(child.pid, 9)
        wait_until(lambda: child.exit() is not None)
        assert families.use_of(child.pid) is None


def test_memory_counts_once_however_many_threads_have_it() -> None:
    code = (
        "import threading, sys\n"
        "for _ in range(9): threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "print(flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        families = Families()
        families.keep_only([process.pid])

        families.look_around()

        assert families.pids() == (process.pid,)
        process.communicate(b"\n")


def test_a_leader_that_has_gone_already_has_no_family() -> None:
    families = Families()
    families.keep_only([2**30])

    assert families.pids() == ()


def test_where_nobody_can_look_nothing_is_learnt_and_who_is_known_stays_known(
    places: Path,
) -> None:
    with running("/bin/sh", "-c", "sleep 60; true") as child:
        wait_until(lambda: any(stat.parent == child.pid for stat in procfs.all_stats()))
        (other,) = [stat.pid for stat in procfs.all_stats() if stat.parent == child.pid]
        families, late = Families(), Families()
        families.keep_only([child.pid])
        with no_descriptor_left():
            families.look_around()
            assert families.owner_of(other) is None
            assert families.use_of(child.pid) is None
            late.keep_only([child.pid])

        assert families.pids() == (child.pid,)
        assert late.pids() == ()
        assert families.owner_of(other) == child.pid
