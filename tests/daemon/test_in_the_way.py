"""Whatever stands in the place of something of ours is named before anything is opened, and is left as it is."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from qmsup.daemon.folders import make_folders
from qmsup.daemon.in_the_way import in_the_way
from qmsup.errors import ConfigError
from tests.support.box import fake
from tests.support.servers import free_port

SOCKETS = ("run/scheduler.sock", "run/feed.sock", "run/jobs.sock")
LOCKS = ("run/sockets.lock", "state/scheduler.lock")
FILES = (*LOCKS, "state/epoch", "state/children.key", "state/state.db", "state/state.db-wal")
FOLDERS = ("state/logs", "state/journal", "state/jobs", "state/config", "state/children")


def told() -> list[str]:
    with pytest.raises(ConfigError) as refused:
        make_folders()
    return list(refused.value.problems)


@pytest.mark.parametrize("name", [*SOCKETS, *FILES])
def test_a_folder_where_something_else_belongs_is_named(places: Path, name: str) -> None:
    (places / name).mkdir(parents=True)

    what = "socket" if name in SOCKETS else "file"
    assert told() == [f"{places}/{name} is in the way of a {what} and is none: remove it"]


@pytest.mark.parametrize("name", [*SOCKETS, *FOLDERS])
def test_a_file_where_something_else_belongs_is_named(places: Path, name: str) -> None:
    make_folders()
    (places / name).touch()

    what = "socket" if name in SOCKETS else "folder"
    assert told() == [f"{places}/{name} is in the way of a {what} and is none: remove it"]


@pytest.mark.parametrize("name", [*SOCKETS, *LOCKS])
def test_a_link_where_a_socket_or_a_lock_belongs_is_named_and_not_followed(
    places: Path, name: str
) -> None:
    make_folders()
    precious = places / "precious"
    precious.write_text("precious")
    (places / name).symlink_to(precious)

    what = "socket" if name in SOCKETS else "lock"
    assert told() == [f"{places}/{name} is a link in the way of a {what}: remove it"]
    assert precious.read_text() == "precious"


def test_all_of_it_is_told_at_once(places: Path) -> None:
    for name in ("run/feed.sock", "state/state.db"):
        (places / name).mkdir(parents=True)

    assert len(told()) == 2


def test_what_an_earlier_scheduler_left_and_folders_on_other_disks_are_no_harm(
    places: Path,
) -> None:
    make_folders()
    for name in SOCKETS:
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(places / name))
    for name in FILES:
        (places / name).touch()
    elsewhere = places / "big"
    elsewhere.mkdir()
    (places / "state/logs").symlink_to(elsewhere)

    assert list(in_the_way()) == []
    make_folders()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("name", ["run", "state", "run/feed.sock", "state/state.db", "state/logs"])
def test_what_is_another_users_is_named_with_that_user(places: Path, name: str) -> None:
    make_folders()
    path = places / name
    if name.endswith(".sock"):
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    elif name.endswith(".db"):
        path.touch()
    else:
        path.mkdir(exist_ok=True)
    os.chown(path, 4711, -1)

    (obstacle,) = in_the_way()

    assert str(obstacle).startswith(f"{path} belongs to user 4711, and this is user 0: ")


def test_a_scheduler_says_so_in_a_line_and_leaves_all_as_it_is(places: Path) -> None:
    (places / "run/feed.sock").mkdir(parents=True)
    config = places / "config.yaml"
    bind = f"127.0.0.1:{free_port()}"
    config.write_text(json.dumps({"models": {"m": fake()}, "listeners": {"main": {"bind": bind}}}))

    for verb in ("scheduler", "serve"):
        ended = subprocess.run(
            [sys.executable, "-m", "qmsup", verb, "-c", str(config)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

        assert ended.returncode == 2
        assert ended.stderr.splitlines()[-1].endswith(
            f"{places}/run/feed.sock is in the way of a socket and is none: remove it"
        )
        assert "Traceback" not in ended.stderr
    assert sorted(path.name for path in places.rglob("*")) == [
        "config.yaml",
        "feed.sock",
        "run",
        "state",
    ]
