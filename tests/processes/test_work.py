import os
import signal
import sys
from pathlib import Path

import pytest

from qmsup.processes import procfs, work
from tests.support.children import running, wait_until
from tests.support.descriptors import no_descriptor_left

WORKS = "import subprocess,sys; subprocess.run([sys.executable, '-c', 'while 1: sum(range(9999))'])"


def test_work_of_any_process_of_a_child_counts(places: Path) -> None:
    with running(sys.executable, "-c", WORKS) as child:
        before = work.look_at(child)

        wait_until(lambda: work.look_at(child).done != before.done)
        assert (before.is_stopped, before.is_traced) == (False, False)


def test_a_child_at_rest_does_nothing_even_when_it_is_looked_at(places: Path) -> None:
    with running("sleep", "60") as child:
        wait_until(lambda: Path(f"/proc/{child.pid}/comm").read_text() == "sleep\n")
        wait_until(lambda: len({work.look_at(child).done for _ in range(3)}) == 1)


def test_a_stopped_child_is_seen_to_be_stopped(places: Path) -> None:
    with running("sleep", "60") as child:
        os.kill(child.pid, signal.SIGSTOP)

        wait_until(lambda: work.look_at(child).is_stopped)
        assert not work.look_at(child).is_traced


def test_a_process_that_is_gone_or_hidden_adds_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(procfs, "_PROC", tmp_path)

    assert (procfs.ticks_of(1), procfs.io_bytes(1)) == (0, 0)


def test_the_effort_of_a_child_is_that_of_all_its_processes(places: Path) -> None:
    with running(sys.executable, "-c", WORKS) as child:
        before = work.effort_of(child)

        wait_until(lambda: work.effort_of(child).cpu > before.cpu + 0.1)
        assert (before.is_held, before.uses_gpu) == (False, False)
        os.kill(child.pid, signal.SIGSTOP)
        wait_until(lambda: work.effort_of(child).is_held)


def test_who_has_a_gpu_open_uses_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(procfs, "_PROC", tmp_path)
    for pid, device in ((1, "/dev/null"), (2, "/dev/nvidia0"), (3, "/dev/dri/renderD128")):
        (tmp_path / str(pid) / "fd").mkdir(parents=True)
        (tmp_path / str(pid) / "fd" / "3").symlink_to(device)

    assert [procfs.uses_gpu(pid) for pid in (1, 2, 3, 4)] == [False, True, True, False]
    assert procfs.cpu_time_of(1) == 0.0


def test_where_nobody_can_look_nothing_is_held_against_a_child(places: Path) -> None:
    with running("sleep", "60") as child, no_descriptor_left():
        assert work.look_at(child).is_traced
        assert work.effort_of(child).is_held
