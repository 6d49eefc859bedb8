import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from qmsup.processes import procfs, records, stop
from qmsup.processes.child import NONCE_VARIABLE, Child
from qmsup.processes.procfs import Stat
from qmsup.processes.stop import AloneAt
from qmsup.units import Seconds
from tests.support.children import is_alive, running, wait_until
from tests.support.descriptors import no_descriptor_left

DEAF = (
    "import signal,time;signal.signal(15, signal.SIG_IGN);print('deaf',flush=True);time.sleep(60)"
)
FAMILY = (
    "import os,subprocess,sys,time;"
    "a=subprocess.Popen(['sleep','61']);"
    "b=subprocess.Popen(['sleep','62'],start_new_session=True);"
    "c=subprocess.Popen(['sleep','63'],env={});"
    "print('family',a.pid,b.pid,c.pid,flush=True);time.sleep(60)"
)


def family_of(child: Child) -> list[int]:
    wait_until(lambda: "family" in child.log.read_text())
    return [int(word) for word in child.log.read_text().rpartition("family")[2].split()]


def test_term_ends_a_child_that_hears_it(places: Path) -> None:
    with running("sleep", "60") as child:
        stop.terminate(child)
        assert stop.end(child, grace=Seconds(20.0))

        assert child.process is not None
        assert child.process.returncode == -signal.SIGTERM
        assert list(records.read_all()) == []


def test_kill_ends_one_that_does_not(places: Path) -> None:
    with running(sys.executable, "-c", DEAF) as child:
        wait_until(lambda: "deaf" in child.log.read_text())
        stop.terminate(child)
        assert stop.end(child, grace=Seconds(0.05))

        assert child.process is not None
        assert child.process.returncode == -signal.SIGKILL


def test_everything_that_came_from_a_child_ends_with_it(places: Path) -> None:
    with running(sys.executable, "-c", FAMILY) as child:
        family = family_of(child)
        assert set(stop.pids_of(child)) == {child.pid, *family}

        stop.terminate(child)
        assert stop.end(child, grace=Seconds(20.0))

        assert [is_alive(pid) for pid in family] == [False] * 3


def test_what_outlives_its_leader_is_found_without_it(places: Path) -> None:
    with running(sys.executable, "-c", FAMILY) as child:
        family = family_of(child)
        os.kill(child.pid, signal.SIGKILL)
        wait_until(lambda: child.exit() is not None)

        assert stop.kill_all(child)
        wait_until(lambda: not stop.kill_all(child))

        assert [is_alive(pid) for pid in family] == [False] * 3
        stop.bury(child)


def test_what_kill_does_not_end_is_told(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running("sleep", "60") as child, monkeypatch.context() as patch:
        patch.setattr(stop, "_KILL_PATIENCE", 0.0)
        patch.setattr(stop, "kill_all", lambda _child: True)

        assert not stop.end(child, grace=Seconds(0.0))


def test_an_ended_child_is_terminated_in_silence(places: Path) -> None:
    with running("sleep", "0") as child:
        wait_until(lambda: child.exit() is not None)
        stop.terminate(child)
        os.waitpid(child.pid, 0)
        stop.terminate(child)

        assert not stop.kill_all(child)


def test_a_signal_goes_to_the_process_that_was_meant_or_to_none(places: Path) -> None:
    with running("sleep", "60") as child:
        stat = procfs.stat_of(child.pid)
        assert stat is not None

        stop.send(replace(stat, start_ticks=1), signal.SIGKILL)
        stop.send(replace(stat, pid=2**22 + 1), signal.SIGKILL)
        assert child.exit() is None

        stop.send(stat, signal.SIGKILL)
        wait_until(lambda: child.exit() is not None)
        stop.send(stat, signal.SIGKILL)


def test_a_child_that_was_alone_needs_a_look_at_the_youngest_only(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running("sleep", "60") as child:
        alone = stop.look_around(child)
        assert alone is not None
        late = subprocess.Popen(["sleep", "61"], env={NONCE_VARIABLE: child.record.nonce})
        looks = looks_at_proc(monkeypatch)
        wait_until(
            lambda: procfs.has_in_environ(late.pid, f"{NONCE_VARIABLE}={child.record.nonce}")
        )

        assert stop.kill_all(child, alone)
        late.wait()
        wait_until(lambda: child.exit() is not None)

        assert not stop.kill_all(child, alone)
        assert all(pids is not None and child.pid not in pids for pids in looks)
        stop.bury(child)


def looks_at_proc(monkeypatch: pytest.MonkeyPatch) -> list[range | None]:
    looks: list[range | None] = []

    def look(among: range | None) -> Iterator[Stat]:
        looks.append(among)
        return procfs.all_stats(among)

    monkeypatch.setattr(stop, "all_stats", look)
    return looks


def test_a_child_with_a_family_was_not_alone(places: Path) -> None:
    with running(sys.executable, "-c", FAMILY) as child:
        family_of(child)

        assert stop.look_around(child) is None


@pytest.mark.parametrize(
    ("last", "age", "known"),
    [(None, 0, None), (99, 0, None), (100, 0, range(101, 101)), (150, 10, None)],
)
def test_an_earlier_look_counts_for_a_moment_and_until_pids_start_anew(
    monkeypatch: pytest.MonkeyPatch, last: int | None, age: int, known: range | None
) -> None:
    monkeypatch.setattr(stop, "last_pid", lambda: last)

    assert AloneAt(clock=time.monotonic() - age, last_pid=100).pids_since() == known


def test_a_family_is_found_whatever_pids_it_has(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(sys.executable, "-c", FAMILY) as child:
        family = family_of(child)
        monkeypatch.setattr(procfs, "pid_max", lambda: 0)  # as if they could start anew in no time

        assert set(stop.pids_of(child)) == {child.pid, *family}


def test_what_nobody_can_look_at_is_not_taken_for_gone(places: Path) -> None:
    with running("sleep", "60") as child:
        with no_descriptor_left():
            assert stop.look_around(child) is None
            assert stop.is_anything_left(child)
            assert stop.terminate(child) is None
            assert stop.kill_all(child)

        wait_until(lambda: not stop.is_anything_left(child))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else and come back")
def test_a_child_of_another_user_is_not_ended_and_said_to_live(places: Path) -> None:
    with running("sleep", "60") as child:
        os.setresuid(65534, 65534, 0)
        try:
            stop.terminate(child)
            assert stop.kill_all(child)
        finally:
            os.setresuid(0, 0, 0)

        assert is_alive(child.pid)
