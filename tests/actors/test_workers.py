import os
import subprocess
from collections.abc import Iterator

import pytest

from qmsup.actors import workers as workers_module
from qmsup.actors.inbox import PollingInbox
from qmsup.actors.workers import Workers
from qmsup.core.scheduling.events import Event, ListenerJoined, ListenerLost, ListenerSuspected
from qmsup.core.scheduling.views import Tally
from qmsup.ids import ListenerName, WorkerId
from qmsup.units import Seconds

W = WorkerId("main-1-abc")


@pytest.fixture
def inbox() -> Iterator[PollingInbox]:
    inbox = PollingInbox()
    yield inbox
    inbox.close()


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def _joined(pid: int) -> ListenerJoined:
    return ListenerJoined(listener=W, name=ListenerName("main"), pid=pid)


def _at(seconds: float) -> Seconds:
    return Seconds(seconds)


@pytest.mark.parametrize("is_expected", [False, True])
def test_a_killed_worker_is_a_message(
    inbox: PollingInbox, process: subprocess.Popen[bytes], is_expected: bool
) -> None:
    workers, events = Workers(inbox), list[Event]()
    if is_expected:
        assert workers.expect(W, process.pid, _at(0))
    else:
        assert workers.greet(_joined(process.pid), _at(0), events.append)

    process.kill()

    # What is done about it in between, while the inbox is about to wait, would be sent when somebody else speaks.
    assert inbox.get().message == ListenerLost(listener=W)
    assert events == []
    assert not workers.hear(W, _at(1))


@pytest.mark.parametrize("pid", [-1, 0, 2**31, 2**63 - 1])
def test_what_is_no_pid_is_no_worker(inbox: PollingInbox, pid: int) -> None:
    workers = Workers(inbox)

    assert not workers.greet(_joined(pid), _at(0), lambda _: None)
    assert not workers.expect(W, pid, _at(0))
    assert not workers.hear(W, _at(0))


@pytest.mark.parametrize(("held", "level"), [(0, "INFO"), (2, "WARNING")])
def test_the_end_of_one_that_had_nothing_is_no_warning(
    inbox: PollingInbox, caplog: pytest.LogCaptureFixture, held: int, level: str
) -> None:
    caplog.set_level("INFO", "qmsup")
    workers = Workers(inbox, lambda _: Tally(waiting=0, held=held))
    with subprocess.Popen(["sleep", "60"]) as process:
        assert workers.greet(_joined(process.pid), _at(0), list[Event]().append)
        process.kill()
    assert inbox.get().message == ListenerLost(listener=W)

    (lost,) = [record for record in caplog.records if record.message == "worker.lost"]
    assert lost.levelname == level


def test_a_worker_whose_process_is_gone_cannot_join(inbox: PollingInbox) -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()

    assert not Workers(inbox).greet(_joined(process.pid), _at(0), lambda _: None)


def test_no_more_are_watched_than_a_box_has_and_the_silent_make_room(
    inbox: PollingInbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers_module, "MOST", 3)
    workers, events = Workers(inbox), list[Event]()

    def joins(name: str, at: float) -> bool:
        joined = ListenerJoined(listener=WorkerId(name), name=ListenerName("main"), pid=os.getpid())
        return workers.greet(joined, _at(at), events.append)

    assert [joins(name, 0) for name in ("a", "b", "c", "d")] == [True, True, True, False]
    for name in ("a", "c"):
        workers.hear(WorkerId(name), _at(4))
    assert workers.silent_since(_at(6)) == [ListenerSuspected(listener=WorkerId("b"))]

    assert joins("d", 6)
    assert events == [ListenerLost(listener=WorkerId("b"))]
    assert not workers.hear(WorkerId("b"), _at(7)), "it is to greet again"
    assert joins("a", 7), "who is known needs no room"
    workers.close()


def test_a_stranger_is_to_greet_first(inbox: PollingInbox) -> None:
    assert not Workers(inbox).hear(W, _at(0))


def test_a_silent_worker_becomes_suspect_once_and_is_to_greet_again(
    inbox: PollingInbox, process: subprocess.Popen[bytes]
) -> None:
    workers = Workers(inbox)
    workers.greet(_joined(process.pid), _at(0), lambda _: None)
    assert workers.hear(W, _at(3))
    assert workers.next_check() == 8.0

    assert workers.silent_since(_at(7.9)) == []
    assert workers.silent_since(_at(8)) == [ListenerSuspected(listener=W)]
    assert workers.silent_since(_at(9)) == []
    assert workers.next_check() is None
    assert not workers.hear(W, _at(9))

    assert workers.greet(_joined(process.pid), _at(9), lambda _: None)
    assert workers.hear(W, _at(10))
    workers.close()


def test_a_worker_that_tells_otherwise_twice_in_a_row_is_to_greet_again(
    inbox: PollingInbox, process: subprocess.Popen[bytes]
) -> None:
    workers, here, there = Workers(inbox), Tally(waiting=0, held=1), Tally(waiting=1, held=0)
    workers.greet(_joined(process.pid), _at(0), lambda _: None)

    passing = [workers.agree(W, told, here) for told in (there, here, there, here)]
    lasting = [workers.agree(W, there, here) for _ in range(3)]
    workers.greet(_joined(process.pid), _at(0), lambda _: None)
    afterwards = workers.agree(W, there, here)

    assert passing == [True, True, True, True]
    assert lasting == [True, False, False]
    assert afterwards
    workers.close()
