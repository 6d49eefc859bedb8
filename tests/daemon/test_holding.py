"""Somebody removes the folders of a scheduler at work: a cleaner of temporary files, the end of a login, a hand."""

import shutil
import socket
from pathlib import Path

import pytest

from qmsup import places as where
from qmsup.control.client import Client
from qmsup.daemon.epoch import next_epoch
from qmsup.daemon.exits import Exit
from qmsup.daemon.holding import Hold
from qmsup.daemon.lock import LockedError, SchedulerLock
from qmsup.ids import Epoch
from qmsup.transport.feed import FeedReader
from qmsup.units import Seconds
from tests.support.box import fake
from tests.support.daemons import configuration, qmsup


class Sockets:
    """Whether they have names, and how often they were to be given them."""

    def __init__(self) -> None:
        self.names = 0
        self.are_there = True

    def look(self, hold: Hold) -> None:
        hold.look(are_named=lambda: self.are_there, name_again=self._name)

    def _name(self) -> None:
        self.names += 1


def held() -> Hold:
    for folder in (where.runtime_dir(), where.state_dir()):
        where.make_private(folder)
    return Hold(
        SchedulerLock(where.lock_file()), SchedulerLock(where.sockets_lock_file()), Epoch(7)
    )


def test_what_is_in_its_place_stays_as_it_is(places: Path) -> None:
    hold, sockets = held(), Sockets()

    sockets.look(hold)

    assert hold.has_sockets
    assert sockets.names == 0
    assert not (where.state_dir() / "epoch").exists()
    hold.release()


def test_locks_are_taken_again_lives_counted_on_and_sockets_named(
    places: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hold, sockets = held(), Sockets()
    for folder in (where.runtime_dir(), where.state_dir()):
        shutil.rmtree(folder)
    sockets.are_there = False

    sockets.look(hold)

    for lock in (where.lock_file(), where.sockets_lock_file()):
        with pytest.raises(LockedError):
            SchedulerLock(lock)
    assert next_epoch(where.state_dir()) == 8
    assert sockets.names == 1
    assert caplog.messages == ["lock.taken_again"] * 2
    hold.release()
    SchedulerLock(where.lock_file()).release()


def test_what_another_scheduler_has_by_now_is_left_to_it_and_told_once(
    places: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hold, sockets = held(), Sockets()
    where.sockets_lock_file().unlink()
    other = SchedulerLock(where.sockets_lock_file())
    sockets.are_there = False

    sockets.look(hold)
    sockets.look(hold)

    assert not hold.has_sockets
    assert sockets.names == 0
    assert caplog.messages == ["lock.lost"]
    other.release()
    sockets.look(hold)
    assert sockets.names == 1
    assert caplog.messages == ["lock.lost", "lock.taken_again"]
    hold.release()


def test_what_was_put_in_the_place_of_the_folder_is_not_used(
    places: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hold, sockets = held(), Sockets()
    shutil.rmtree(where.runtime_dir())
    where.runtime_dir().mkdir()
    where.sockets_lock_file().symlink_to(places / "precious")
    sockets.are_there = False

    sockets.look(hold)

    assert sockets.names == 0
    assert not (places / "precious").exists()
    (lost,) = caplog.records
    assert "is a link in the way of a lock: remove it" in str(vars(lost))
    hold.release()


@pytest.mark.system
def test_a_scheduler_whose_runtime_folder_is_removed_is_found_again(places: Path) -> None:
    config = configuration(places, {"m": fake()})
    with qmsup("scheduler", config) as scheduler:
        scheduler.says('"scheduler.started"')

        shutil.rmtree(where.runtime_dir())

        scheduler.says('"socket.bound_again"', count=3)
        with Client() as client:
            assert client.ask("load", model="m")["text"] == "m is ready"
        reader = FeedReader(where.feed_endpoint(), ["model."])
        assert reader.await_greeting(Seconds(10.0))
        reader.close()
        with socket.socket(socket.AF_UNIX) as visitor:
            visitor.connect(str(where.jobs_socket()))
            visitor.sendall(b"GET /sdcpp/v1/jobs/none HTTP/1.1\r\n\r\n")
            assert visitor.recv(4096).startswith(b"HTTP/1.1 404 ")
        with qmsup("scheduler", config) as second:
            assert second.ends() == Exit.UNUSABLE
        assert scheduler.stop() == Exit.OK
        assert [*where.runtime_dir().glob("*.sock")] == []
