"""The folders, in every state that has been somebody's trouble."""

from pathlib import Path

import pytest

from qmsup import places as where
from qmsup.daemon.doctor.box import Box
from qmsup.daemon.doctor.folders import look
from tests.support.doctoring import graded
from tests.support.users import as_nobody


def test_folders_that_are_there_and_that_will_be_made_are_well(places: Path) -> None:
    where.make_private(where.state_dir())

    found = list(look(Box()))

    assert graded(found) == [("ok", str(where.runtime_dir())), ("ok", str(where.state_dir()))]
    assert ["will be made" in finding.says for finding in found] == [True, False]
    assert not where.runtime_dir().exists()
    assert [*where.state_dir().iterdir()] == []


def test_a_folder_that_may_not_be_written_is_bad(places: Path) -> None:
    where.make_private(where.state_dir())
    places.chmod(0o755)
    where.state_dir().chmod(0o555)
    with as_nobody():
        found = {finding.about: finding for finding in look(Box())}
    where.state_dir().chmod(0o700)

    state = found[str(where.state_dir())]
    assert (state.grade, "permission denied" in state.says) == ("bad", True)
    assert "QMSUP_STATE_DIR" in state.do


def test_a_folder_on_a_file_system_that_takes_no_files_is_bad(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QMSUP_STATE_DIR", "/proc/qmsup")

    assert ("bad", "/proc/qmsup") in graded(look(Box()))


def test_a_file_in_the_place_of_a_folder_is_bad(places: Path) -> None:
    where.runtime_dir().write_text("")

    assert ("bad", str(where.runtime_dir())) in graded(look(Box()))


def test_a_folder_that_others_may_enter_is_told(places: Path) -> None:
    for folder in (where.runtime_dir(), where.state_dir()):
        where.make_private(folder).chmod(0o755)

    runtime, state = (finding for finding in look(Box()) if finding.grade == "warn")

    assert (runtime.about, state.about) == (str(where.runtime_dir()), str(where.state_dir()))
    assert "755" in runtime.says
    assert "its socket controls" in runtime.do
    assert "socket" not in state.do, "there is none in it"


def test_a_disk_without_room_is_bad(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = {
        "_ROOM_LITTLE_MIB": "warn",
        "_ROOM_TOO_LITTLE_MIB": "bad",
    }  # what there is stays as it is
    for bound, grade in room.items():
        monkeypatch.setattr(f"qmsup.daemon.doctor.folders.{bound}", 10**12)

        assert (grade, str(where.state_dir())) in graded(look(Box()))


def test_a_path_too_long_for_a_socket_is_bad(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QMSUP_RUNTIME_DIR", str(places / ("x" * 100)))

    [finding] = [finding for finding in look(Box()) if finding.grade == "bad"]

    assert "107" in finding.says
    assert "shorter" in finding.do


def test_what_is_no_socket_in_the_sockets_place_is_bad(places: Path) -> None:
    where.make_private(where.runtime_dir())
    where.scheduler_socket().write_text("")

    assert ("bad", str(where.scheduler_socket())) in graded(look(Box()))
