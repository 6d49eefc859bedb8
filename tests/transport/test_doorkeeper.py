"""Who opens one connection after the other loses all of them, and nobody else does."""

import resource
import select
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import zmq

from qmsup.log import Log
from qmsup.transport import context, doorkeeper
from qmsup.transport.dealer import DealerSocket
from qmsup.transport.doorkeeper import Doorkeeper, doorkeepers_of, may_be_shut
from qmsup.transport.router import RouterSocket
from qmsup.units import Seconds
from tests.support.box import until

CROWD = """
    import socket, sys, time
    path, number = sys.argv[1], int(sys.argv[2])
    crowd = []
    while len(crowd) < number:
        crowd.append(socket.socket(socket.AF_UNIX))
        try:
            crowd[-1].connect(path)
        except OSError:
            break
    print(len(crowd), flush=True)
    sys.stdin.read()
"""
"""A program that leaks connections."""


@pytest.fixture
def router(places: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RouterSocket]:
    monkeypatch.setattr(doorkeeper, "MOST", 20)
    monkeypatch.setattr(doorkeeper, "_log", Log("gateway"))  # with lines to spare
    made = RouterSocket(f"ipc://{places}/s")
    yield made
    made.close()
    context.destroy()


def crowd(places: Path, number: int) -> "subprocess.Popen[str]":
    """So many connections of another program, as long as it lives, or until it is refused."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CROWD), f"{places}/s", str(number)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def look(router: RouterSocket) -> int:
    """As its owner does; how many are connected."""
    [keeper] = router.doorkeepers
    keeper.look()
    return len(keeper._connected)


def is_answered(router: RouterSocket, peer: DealerSocket) -> bool:
    peer.send([b"hello"])
    until(lambda: _has_answered(router, peer))
    return peer.receive() == [b"hello"]


def _has_answered(router: RouterSocket, peer: DealerSocket) -> bool:
    look(router)
    for sender, frames in router.receive():
        for frame in frames:
            router.send(sender, frame)
    return peer.wait(Seconds(0.0))


def test_one_that_leaks_connections_loses_them_and_others_keep_theirs(
    places: Path,
    router: RouterSocket,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doorkeeper, "_SHUT_FOR", Seconds(0.05))
    before = DealerSocket(f"ipc://{places}/s", b"before")
    assert is_answered(router, before)

    with crowd(places, 100) as program:
        until(lambda: look(router) <= 20 and "peer.too_many_connections" in caplog.messages)
        after = DealerSocket(f"ipc://{places}/s", b"after")

        assert is_answered(router, before)
        assert is_answered(router, after)
        told = vars(caplog.records[0])["qmsup_fields"]
        assert (told["pid"], told["most"]) == (program.pid, 20)
        program.kill()
    before.close()
    after.close()


def test_nobody_comes_in_while_the_door_is_shut_and_the_crowd_is_sent_away(
    places: Path, router: RouterSocket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doorkeeper, "_SHUT_FOR", Seconds(3600.0))
    with crowd(places, 10_000) as program:
        until(lambda: look(router) <= 20 and not (places / "s").exists())
        assert program.stdout is not None
        assert int(program.stdout.readline()) < 10_000, "the program found no socket at last"
        program.kill()

    with socket.socket(socket.AF_UNIX) as newcomer, pytest.raises(FileNotFoundError):
        newcomer.connect(f"{places}/s")


def test_of_a_socket_that_is_closed_while_it_is_shut_nothing_stays(places: Path) -> None:
    made = RouterSocket(f"ipc://{places}/s")
    made.doorkeepers[0]._shut()
    assert (places / "s.shut").exists()

    made.close()
    context.destroy()

    assert not list(places.iterdir())


def test_a_name_that_another_socket_took_meanwhile_stays_its_own(
    places: Path, router: RouterSocket
) -> None:
    [keeper] = router.doorkeepers
    keeper._shut()
    keeper._shut()
    (places / "s").write_text("another's")
    keeper._open()

    assert (places / "s").read_text() == "another's"
    assert not (places / "s.shut").exists()


def test_the_first_who_comes_wakes_who_waits_for_it(places: Path, router: RouterSocket) -> None:
    poll = select.poll()
    poll.register(router.doorkeepers[0].fileno(), select.POLLIN)
    with socket.socket(socket.AF_UNIX) as visitor:
        visitor.connect(f"{places}/s")
        assert poll.poll(10_000)


def test_who_has_left_is_not_counted(places: Path, router: RouterSocket) -> None:
    [keeper] = router.doorkeepers
    for _ in range(200):
        with socket.socket(socket.AF_UNIX) as visitor:
            visitor.connect(f"{places}/s")
        keeper.look()

    until(lambda: look(router) == 0)


def test_what_is_no_connection_of_ours_is_let_alone(places: Path, router: RouterSocket) -> None:
    [keeper] = router.doorkeepers
    one, other = socket.socketpair()
    with one, other, (places / "file").open("w") as file:
        gone = file.fileno() + 500
        for descriptor in (one.fileno(), file.fileno(), gone):
            assert keeper._owner_of(descriptor, hang_up=True) is None
        one.sendall(b"still there")
        assert other.recv(20) == b"still there"


def test_of_a_crowd_of_programs_some_are_sent_away_at_once(
    places: Path, router: RouterSocket, caplog: pytest.LogCaptureFixture
) -> None:
    with ExitStack() as programs:
        for _ in range(2):
            program = programs.enter_context(crowd(places, 10))
            assert program.stdout is not None
            program.stdout.readline()
            programs.callback(program.kill)
        until(lambda: look(router) == 20)
        one = programs.enter_context(socket.socket(socket.AF_UNIX))
        one.connect(f"{places}/s")

        until(lambda: look(router) == 11)
    assert caplog.messages == ["peer.too_many_connections"]


def test_who_was_there_before_a_crowd_of_programs_with_one_connection_each_stays(
    places: Path, router: RouterSocket, caplog: pytest.LogCaptureFixture
) -> None:
    worker = DealerSocket(f"ipc://{places}/s", b"worker")
    assert is_answered(router, worker)
    [(workers, _)] = [*router.doorkeepers[0]._connected.items()]

    with ExitStack() as programs:
        for _ in range(21):
            program = programs.enter_context(crowd(places, 1))
            programs.callback(program.kill)
        until(lambda: look(router) and "peer.too_many_connections" in caplog.messages)

        assert workers in router.doorkeepers[0]._connected
    worker.close()


def test_what_a_process_left_that_was_killed_while_it_was_shut_is_cleared_away(
    places: Path,
) -> None:
    (places / "s.shut").touch()
    assert may_be_shut(f"{places}/s")

    made = RouterSocket(f"ipc://{places}/s")

    assert not (places / "s.shut").exists()
    made.close()
    context.destroy()


def test_it_opens_again_in_a_folder_that_knows_no_links(
    places: Path, router: RouterSocket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, target: Path) -> None:
        raise PermissionError(path, target)

    [keeper] = router.doorkeepers
    keeper._shut()
    monkeypatch.setattr(Path, "hardlink_to", refuse)

    keeper._open()

    assert [each.name for each in places.iterdir()] == ["s"]
    with socket.socket(socket.AF_UNIX) as newcomer:
        newcomer.connect(f"{places}/s")


def test_a_number_that_is_told_and_is_another_files_by_now_makes_nobody_leave(
    places: Path, router: RouterSocket
) -> None:
    [keeper] = router.doorkeepers
    peer = DealerSocket(f"ipc://{places}/s", b"peer")
    assert is_answered(router, peer)
    keeper._connected |= dict.fromkeys(range(10_000, 10_100))

    keeper._make_room()

    assert len(keeper._connected) == 1
    assert is_answered(router, peer)
    peer.close()


def test_an_address_of_another_kind_has_no_doorkeeper() -> None:
    with context.current().socket(zmq.PAIR) as made:
        assert doorkeepers_of(made, "tcp://127.0.0.1:1") == ()
    context.destroy()


def test_how_many_are_let_in_depends_on_how_many_descriptors_there_may_be(places: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (400, hard))
    try:
        made = context.current().socket(zmq.ROUTER)
        keeper = Doorkeeper(made, f"ipc://{places}/s")
        assert keeper._most == 50
        keeper.close()
        made.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    context.destroy()
