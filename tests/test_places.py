import os
import stat
from pathlib import Path

import pytest

from qmsup import places
from qmsup.ids import ModelId


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("QMSUP_RUNTIME_DIR", "QMSUP_STATE_DIR", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)


def test_without_a_word_they_are_the_systems() -> None:
    assert places.runtime_dir() == Path("/run/qmsup")
    assert places.state_dir() == Path("/var/lib/qmsup")


def test_a_users_own_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1000")
    monkeypatch.setenv("XDG_STATE_HOME", "/u/state")

    assert places.scheduler_socket() == Path("/run/user/1000/qmsup/scheduler.sock")
    assert places.lock_file() == Path("/u/state/qmsup/scheduler.lock")
    assert places.sockets_lock_file().name != places.lock_file().name  # the folders may be one


def test_the_copy_put_in_force_last_is_the_youngest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QMSUP_STATE_DIR", str(tmp_path))
    assert places.youngest_config_copy() is None
    places.config_copies().mkdir()
    for name, age in (("a", 3), ("b", 1), ("c", 2)):
        path = places.config_copies() / f"{name}.yaml"
        path.touch()
        os.utime(path, ns=(0, 10**18 - age))

    youngest = places.youngest_config_copy()

    assert youngest is not None
    assert youngest.path.name == "b.yaml"


def test_what_the_operator_says_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1000")
    monkeypatch.setenv("QMSUP_RUNTIME_DIR", "/tmp/r")
    monkeypatch.setenv("QMSUP_STATE_DIR", "/tmp/s")

    assert places.scheduler_endpoint() == "ipc:///tmp/r/scheduler.sock"
    assert places.state_dir() == Path("/tmp/s")


def test_a_models_name_cannot_leave_the_log_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QMSUP_STATE_DIR", "/tmp/s")

    assert places.log_file(ModelId("../a/b:7b")) == Path("/tmp/s/logs/..%2Fa%2Fb%3A7b.log")


def test_a_private_folder_is_closed_to_others(tmp_path: Path) -> None:
    made = places.make_private(tmp_path / "x" / "y")

    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert places.make_private(made) == made
