import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from qmsup.processes import marks, procfs, records
from qmsup.processes.child import NONCE_VARIABLE
from qmsup.processes.marks import MARK_VARIABLE, Unrecorded, mark_of, unrecorded
from qmsup.processes.records import Record
from tests.support.children import is_alive, running, wait_until


def found(*known: str) -> list[Unrecorded]:
    """Those of this test: all the machine is looked at, and other tests run on it."""
    return list(unrecorded(known))


@contextmanager
def carrying(mark: str, nonce: str = "n" * 32) -> Iterator[subprocess.Popen[bytes]]:
    env = {**os.environ, NONCE_VARIABLE: nonce, MARK_VARIABLE: mark}
    with subprocess.Popen(["sleep", "60"], env=env, start_new_session=True) as process:
        wait_until(lambda: procfs.has_in_environ(process.pid, f"{NONCE_VARIABLE}={nonce}"))
        yield process
        process.kill()


def record(nonce: str = "n" * 32) -> Record:
    return records.new_record(model="m", incarnation=7, nonce=nonce, port=21000)


def test_a_child_without_a_record_is_known_by_what_it_carries(places: Path) -> None:
    with running("sleep", "60") as child:
        records.erase(child.record)

        [seen] = found()

        assert seen.is_proved
        assert seen.claimant == child.pid
        assert seen.record == replace(child.record, is_ready=True)
        assert seen.record.log_start > 0
        assert found(child.record.nonce) == []


def test_of_a_child_whose_leader_is_gone_no_pid_is_told(places: Path) -> None:
    code = "import subprocess;subprocess.Popen(['sleep','61'])"
    with running(sys.executable, "-W", "ignore", "-c", code) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

        [seen] = found()

        assert (seen.record.pid, seen.record.start_ticks, seen.record.is_ready) == (0, 0, False)
        assert seen.is_proved
        assert seen.claimant != child.pid
        assert is_alive(seen.claimant)


def test_of_another_folder_nothing_is_told(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running("sleep", "60"):
        monkeypatch.setenv("QMSUP_STATE_DIR", str(places / "other"))
        assert found() == []
        monkeypatch.setenv("QMSUP_STATE_DIR", str(places / "state"))


def test_a_folder_that_was_made_anew_proves_nothing(places: Path) -> None:
    with running("sleep", "60") as child:
        marks.key_file().unlink()

        [without] = found()
        marks.make_key()
        [with_another] = found()

        assert (without.is_proved, with_another.is_proved) == (False, False)
        assert without.claimant == child.pid


def _changed() -> str:
    told = json.loads(mark_of(record()))
    return json.dumps({**told, "record": told["record"].replace("21000", "21001")})


def test_a_mark_that_was_changed_is_not_proved(places: Path) -> None:
    with carrying(_changed()) as process:
        [seen] = found()
        assert (seen.is_proved, seen.claimant, seen.record.port) == (False, process.pid, 21001)


@pytest.mark.parametrize("mark", ["", "{", "[]", "[" * 20_000], ids=len)
def test_what_is_no_mark_is_nothing(mark: str, places: Path) -> None:
    with carrying(mark):
        assert found() == []


def test_the_mark_of_another_child_is_nothing(places: Path) -> None:
    with carrying(mark_of(record("o" * 32))):
        assert found() == []


def test_the_key_is_kept_is_ours_alone_and_one_that_is_torn_is_made_anew(places: Path) -> None:
    marks.make_key()
    key = marks.key_file().read_bytes()
    marks.make_key()

    assert marks.key_file().read_bytes() == key
    assert marks.key_file().stat().st_mode & 0o777 == 0o600
    marks.key_file().write_bytes(key[:5])
    marks.key_file().with_suffix(".new").touch()  # of one that died in the middle
    marks.make_key()
    assert len(marks.key_file().read_bytes()) == len(key)


def test_without_room_for_a_key_there_is_a_mark_that_proves_nothing(places: Path) -> None:
    (places / "state").mkdir()
    (places / "state/children.new").mkdir()  # in the way, as a full disk is
    with carrying(mark_of(record())):
        [seen] = found()

    assert not seen.is_proved
