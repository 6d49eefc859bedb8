import errno
import os
import socket
from pathlib import Path

import pytest

from qmsup.daemon.folders import make_folders
from qmsup.errors import ConfigError


def refusal() -> str:
    with pytest.raises(ConfigError) as refused:
        make_folders()
    (problem,) = refused.value.problems
    return problem


def test_both_folders_are_made_and_closed_to_others(places: Path) -> None:
    make_folders()
    make_folders()

    for folder in (places / "run", places / "state"):
        assert folder.stat().st_mode & 0o777 == 0o700
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "variable"), [("run", "QMSUP_RUNTIME_DIR"), ("state", "QMSUP_STATE_DIR")]
)
def test_a_file_in_the_way_is_named_with_the_variable_that_moves_the_folder(
    places: Path, name: str, variable: str
) -> None:
    (places / name).touch()

    assert (
        refusal()
        == f"cannot use {places / name} (it is no folder): set {variable} to a folder of yours"
    )


def test_a_folder_under_a_file_cannot_be_made(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (places / "file").touch()
    monkeypatch.setenv("QMSUP_STATE_DIR", str(places / "file" / "state"))

    assert "(Not a directory): set QMSUP_STATE_DIR" in refusal()
    assert not (places / "run").exists()


def test_a_folder_that_was_there_stays_when_the_other_cannot_be_made(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (places / "run").mkdir()
    monkeypatch.setenv("QMSUP_STATE_DIR", "/proc/self/state")

    assert "set QMSUP_STATE_DIR" in refusal()
    assert (places / "run").exists()


def test_a_folder_that_cannot_be_written_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QMSUP_RUNTIME_DIR", "/proc/self")  # not even by root

    assert refusal().endswith("set QMSUP_RUNTIME_DIR to a folder of yours")


def test_a_path_too_long_for_a_socket_is_refused(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    longest = 107 - len(f"{places}//scheduler.sock")
    monkeypatch.setenv("QMSUP_RUNTIME_DIR", str(places / ("x" * longest)))
    make_folders()

    monkeypatch.setenv("QMSUP_RUNTIME_DIR", str(places / ("x" * (longest + 1))))

    assert "too long for a socket: set QMSUP_RUNTIME_DIR" in refusal()


def test_what_is_no_socket_in_the_socket_s_place_is_refused(places: Path) -> None:
    (places / "run" / "scheduler.sock").mkdir(parents=True)

    assert f"{places}/run/scheduler.sock is in the way" in refusal()


def test_a_socket_that_a_dead_scheduler_left_is_no_harm(places: Path) -> None:
    make_folders()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(places / "run" / "scheduler.sock"))

    make_folders()


@pytest.mark.parametrize(("trouble", "goes_on"), [(errno.ENOSPC, True), (errno.EROFS, False)])
def test_a_full_disk_is_no_reason_not_to_start_and_one_for_reading_is(
    places: Path, monkeypatch: pytest.MonkeyPatch, trouble: int, goes_on: bool
) -> None:
    def refuse(_path: Path) -> None:
        raise OSError(trouble, os.strerror(trouble))

    monkeypatch.setattr(Path, "touch", refuse)

    if goes_on:
        make_folders()
    else:
        assert "Read-only" in refusal()
