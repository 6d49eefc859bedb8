import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qmsup.processes import leftovers, marks, records, stop
from qmsup.processes.child import Child
from qmsup.processes.leftovers import stop_leftovers
from qmsup.processes.records import Record, new_record
from qmsup.units import Seconds
from tests.support.children import is_alive, running, wait_until

DEAF = (
    "import signal,time;signal.signal(15, signal.SIG_IGN);print('deaf',flush=True);time.sleep(60)"
)


@contextmanager
def orphan(*argv: str) -> Iterator[Child]:
    """A child whose scheduler is dead, as far as its record says."""
    with running(*argv) as child:
        records.write(of(child))
        yield child


def of(child: Child) -> Record:
    return replace(child.record, owner=2**22 + 1, owner_ticks=1)


def unwritten(child: Child) -> Record:
    """What is known of it by its mark alone."""
    return replace(child.record, is_ready=True)


@contextmanager
def unrecorded(monkeypatch: pytest.MonkeyPatch, *argv: str) -> Iterator[Child]:
    """A child whose scheduler is dead, and of which the full disk took no record."""
    with monkeypatch.context() as patch:
        patch.setattr(records, "new_record", ownerless)
        with running(*argv) as child:
            records.erase(child.record)
            yield child


def ownerless(**names: Any) -> Record:
    return replace(new_record(**names), owner=2**22 + 1, owner_ticks=1)


def test_the_child_of_a_dead_scheduler_is_ended(places: Path) -> None:
    with orphan("sleep", "60") as child:
        assert stop_leftovers().stopped == [of(child)]

        assert not is_alive(child.pid)
        assert list(records.read_all()) == []


def test_one_deaf_to_term_is_killed_and_so_is_what_it_started(places: Path) -> None:
    code = f"import subprocess;p=subprocess.Popen(['sleep','61'],start_new_session=True);{DEAF}"
    with orphan(sys.executable, "-c", code + ";p.wait()") as child:
        wait_until(lambda: "deaf" in child.log.read_text())
        pids = list(stop.pids_of(child))

        assert stop_leftovers(grace=Seconds(0.1)).stopped == [of(child)]

        assert len(pids) == 2
        assert not any(is_alive(pid) for pid in pids)


def test_one_that_was_spawned_but_never_noted_is_found_by_its_nonce(places: Path) -> None:
    with orphan("sleep", "60") as child:
        records.write(replace(of(child), pid=0, start_ticks=0))

        assert len(stop_leftovers().stopped) == 1

        assert not is_alive(child.pid)


def test_what_its_leader_left_is_ended_too(places: Path) -> None:
    code = "import subprocess;subprocess.Popen(['sleep','61'])"
    with orphan(sys.executable, "-W", "ignore", "-c", code) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        (grandchild,) = [pid for pid in stop.pids_of(child) if pid != child.pid]

        assert stop_leftovers().stopped == [of(child)]

        assert not is_alive(grandchild)


def test_a_child_that_the_full_disk_took_no_record_of_is_ended_with_all_it_started(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import subprocess,time;subprocess.Popen(['sleep','61']);time.sleep(60)"
    with unrecorded(monkeypatch, sys.executable, "-c", code) as child:
        wait_until(lambda: len(list(stop.pids_of(child))) == 2)
        pids = list(stop.pids_of(child))

        assert leftovers.look().alive == [unwritten(child)]
        assert stop_leftovers().stopped == [unwritten(child)]

        assert not any(is_alive(pid) for pid in pids)


def test_a_child_without_a_record_can_be_gone_on_with(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with unrecorded(monkeypatch, "sleep", "60") as child:
        assert stop_leftovers(keep=lambda record: record.is_ready).kept == [unwritten(child)]

        assert is_alive(child.pid)


def test_one_that_only_claims_to_be_of_this_folder_is_reported_and_left_alone(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with unrecorded(monkeypatch, "sleep", "60") as child:
        marks.key_file().unlink()

        found = stop_leftovers()

        assert [record.pid for record in found.unproved] == [child.pid]
        assert (found.stopped, found.kept) == ([], [])
        assert is_alive(child.pid)


def test_a_process_without_our_mark_is_reported_and_left_alone(places: Path) -> None:
    with orphan("sleep", "60") as child:
        wrong = replace(of(child), nonce="another" * 5)
        records.erase(child.record)
        records.write(wrong)

        found = stop_leftovers()

        assert (found.unproved, found.stopped) == ([wrong], [])
        assert is_alive(child.pid)
        assert list(records.read_all()) == [wrong]


def test_a_pid_that_was_given_away_again_is_left_alone(places: Path) -> None:
    with running("sleep", "60") as stranger:
        records.erase(stranger.record)
        long_gone = replace(of(stranger), nonce="gone" * 8, start_ticks=1)
        records.write(long_gone)

        assert stop_leftovers() == leftovers.Leftovers(owned=[unwritten(stranger)])

        assert is_alive(stranger.pid)
        assert list(records.read_all()) == []


def test_records_of_another_boot_are_forgotten(places: Path) -> None:
    with orphan("sleep", "60") as child:
        records.write(replace(of(child), boot="another"))

        assert stop_leftovers() == leftovers.Leftovers()

        assert is_alive(child.pid)
        assert list(records.read_all()) == []


def test_the_children_of_a_living_scheduler_are_its_own(places: Path) -> None:
    with running("sleep", "60") as child:
        assert stop_leftovers().owned == [child.record]

        assert is_alive(child.pid)


def test_what_kill_does_not_end_is_kept_on_record(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "_KILL_PATIENCE", -1.0)
    with orphan(sys.executable, "-c", DEAF) as child:
        wait_until(lambda: "deaf" in child.log.read_text())

        assert stop_leftovers(grace=Seconds(0.0)).stuck == [of(child)]

        assert list(records.read_all()) == [of(child)]
        os.kill(child.pid, signal.SIGKILL)
