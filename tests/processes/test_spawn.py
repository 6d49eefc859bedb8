import errno
import os
import signal
import sys
from pathlib import Path

import pytest

from qmsup.errors import ChildError
from qmsup.processes import records
from tests.support.children import LAST_PORT, running, wait_until

REPORT = (
    "import os,signal,sys;print(os.getsid(0)==os.getpid(), sys.stdin.read()=='',"
    " signal.pthread_sigmask(signal.SIG_BLOCK, ()), sorted(os.listdir('/proc/self/fd')))"
)


def test_a_child_leads_its_own_session_and_reads_and_writes_nothing_of_ours(places: Path) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        with running(sys.executable, "-c", REPORT) as child:
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
            said = child.log.read_text().splitlines()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        os.close(reader)
        os.close(writer)

    assert said[1] == "True True set() ['0', '1', '2', '3']"
    assert "start 1: python" in said[0]


def test_a_log_is_written_on_not_over(places: Path) -> None:
    with running(sys.executable, "-c", "print('hello')") as first:
        wait_until(lambda: first.exit() is not None)
    with running(sys.executable, "-c", "print('hello')") as second:
        wait_until(lambda: second.exit() is not None)

    assert second.log.read_text().count("hello") == 2
    assert second.log.read_text()[: second.log_start].count("hello") == 1


def test_a_child_is_on_record_while_it_lives(places: Path) -> None:
    with running("sleep", "60") as child:
        (record,) = records.read_all()

        assert record == child.record
        assert record.owner_is_alive
        assert (record.pid, record.port) == (child.pid, LAST_PORT)
    assert list(records.read_all()) == []


def script(folder: Path, text: str, *, mode: int = 0o700) -> str:
    path = folder / "program"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_program_that_is_not_there_is_told_by_its_key(places: Path) -> None:
    with (
        pytest.raises(ChildError, match=r"no program /nowhere/x: correct .* models\.m\.cmd"),
        running("/nowhere/x"),
    ):
        pass
    with pytest.raises(ChildError, match=r"x-y-z is not on the PATH"), running("x-y-z"):
        pass
    assert list(records.read_all()) == []


def test_a_program_that_may_not_be_run_is_told_with_the_cure(places: Path) -> None:
    program = script(places, "#!/bin/sh\n", mode=0o600)

    with pytest.raises(ChildError, match=r"chmod \+x"), running(program):
        pass


def test_a_script_without_its_interpreter_is_told(places: Path) -> None:
    program = script(places, "#!/nowhere/python\n")

    with pytest.raises(ChildError, match="interpreter"), running(program):
        pass


def test_what_is_no_program_is_told(places: Path) -> None:
    with pytest.raises(ChildError, match="Exec format error"), running(script(places, "\x00")):
        pass


def test_an_argument_that_cannot_be_passed_is_told(places: Path) -> None:
    with pytest.raises(ChildError, match="null byte"), running("sleep", "\x00"):
        pass


def test_without_a_descriptor_to_watch_it_there_is_no_child(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(_pid: int) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "pidfd_open", none_left)

    with pytest.raises(ChildError, match="limit of open files"), running("sleep", "60"):
        pass
    assert list(records.read_all()) == []


def test_a_program_for_another_machine_is_told_with_its_kind(places: Path) -> None:
    foreign = b"\x7fELF\2\1\1" + bytes(9) + b"\2\0\xb7\0" + bytes(200)
    program = script(places, foreign.decode("latin-1"))
    Path(program).write_bytes(foreign)

    with pytest.raises(ChildError, match="built for 64-bit aarch64"), running(program):
        pass


@pytest.fixture
def full(places: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder on a disk without a byte left, as far as whoever writes there can tell."""
    for folder in ("logs", "children"):
        (places / "state" / folder).mkdir(parents=True)
    (places / "state/logs/m.log").symlink_to("/dev/full")

    def no_room(*_args: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", no_room)
    return places


def test_a_full_disk_costs_the_log_and_the_record_not_the_child(full: Path) -> None:
    with running("sleep", "60") as child:
        assert child.exit() is None
    assert list(records.read_all()) == []


def test_a_program_that_ends_when_it_cannot_write_its_log_lives_on_a_full_disk(full: Path) -> None:
    code = "import time; print('hello', flush=True); time.sleep(60)"
    with running(sys.executable, "-c", code) as child:
        assert os.readlink(f"/proc/{child.pid}/fd/1") == os.devnull  # noqa: PTH115 - no path
        assert child.exit() is None


def test_a_disk_too_full_for_a_new_log_costs_the_log(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def no_room(path: str | Path, flags: int, mode: int = 0o777) -> int:
        if str(path).endswith(".log"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return opened(path, flags, mode)

    monkeypatch.setattr(os, "open", no_room)
    with running("sh", "-c", "echo hello; sleep 60") as child:
        assert child.exit() is None
        assert not child.log.exists()
    monkeypatch.undo()


def test_a_state_folder_that_may_not_be_written_is_told(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (places / "state").mkdir()
    (places / "state/children").write_text("in the way")

    with pytest.raises(ChildError, match="QMSUP_STATE_DIR"), running("sleep", "60"):
        pass
