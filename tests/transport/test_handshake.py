"""Who does not know whom is told, and in time to be of use."""

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmsup.transport import context, curve
from qmsup.transport.dealer import DealerSocket
from qmsup.transport.handshake import Stranger
from qmsup.transport.remote import RemoteDoor
from tests.support.servers import free_port

_WITHIN = 10.0


@pytest.fixture
def endpoint() -> Iterator[str]:
    yield f"tcp://127.0.0.1:{free_port()}"
    context.destroy()


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    for name in ("server", "ann", "eve"):
        curve.make_keys(tmp_path, name)
    curve.allow(tmp_path / "ann.key", tmp_path / "clients")
    return tmp_path


@pytest.fixture
def door(endpoint: str, keys: Path) -> Iterator[RemoteDoor]:
    made = RemoteDoor(endpoint, secret_key=keys / "server.key_secret", clients=keys / "clients")
    yield made
    made.close()


def _dealer(endpoint: str, keys: Path, own: str, server: str) -> DealerSocket:
    pair, trusted = curve.read_keys(keys / f"{own}.key_secret"), keys / f"{server}.key"
    return DealerSocket(
        endpoint,
        own.encode(),
        secure=lambda made: curve.connect_with(made, pair, curve.read_public(trusted)),
    )


def _told(dealer: DealerSocket) -> Stranger | None:
    deadline = time.monotonic() + _WITHIN
    while (told := dealer.stranger()) is None:
        assert time.monotonic() < deadline, "nobody is told of"
        time.sleep(0.01)
    dealer.close()
    return told


@pytest.mark.usefixtures("door")
def test_a_key_that_is_not_admitted_and_a_server_that_is_another_are_told_apart(
    endpoint: str, keys: Path
) -> None:
    assert _told(_dealer(endpoint, keys, "eve", "server")) is Stranger.WE
    assert _told(_dealer(endpoint, keys, "ann", "eve")) is Stranger.THEY


def test_who_is_admitted_is_no_stranger(door: RemoteDoor, endpoint: str, keys: Path) -> None:
    ann = _dealer(endpoint, keys, "ann", "server")
    ann.send([b"{}"])
    while not door.receive():
        time.sleep(0.01)

    assert ann.stranger() is None
    ann.close()


def test_a_key_counts_from_when_it_is_put_there_until_it_is_taken_away(
    door: RemoteDoor, endpoint: str, keys: Path
) -> None:
    curve.allow(keys / "eve.key", keys / "clients")
    eve = _dealer(endpoint, keys, "eve", "server")
    eve.send([b"{}"])
    while not door.receive():
        time.sleep(0.01)
    eve.close()

    (keys / "clients" / "eve.key").unlink()

    assert _told(_dealer(endpoint, keys, "eve", "server")) is Stranger.WE


def test_something_else_on_the_port_is_no_scheduler(endpoint: str, keys: Path) -> None:
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    with socket.create_server((host, int(port))) as other:
        ending = threading.Event()

        def serve() -> None:
            other.settimeout(0.05)
            while not ending.is_set():
                try:
                    peer, _ = other.accept()
                except TimeoutError:
                    continue
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n" * 4)
                peer.close()

        serving = threading.Thread(target=serve)
        serving.start()
        try:
            assert _told(_dealer(endpoint, keys, "ann", "server")) is Stranger.THEY
        finally:
            ending.set()
            serving.join()


def test_without_keys_nobody_is_a_stranger(places: Path) -> None:
    plain = DealerSocket(f"ipc://{places}/s.sock", b"a")
    assert plain.stranger() is None
    plain.close()
    context.destroy()
