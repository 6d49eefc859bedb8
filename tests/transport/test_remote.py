"""The door to the network: who has a key that is known comes in, and nobody else."""

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmsup.errors import ConfigError
from qmsup.transport import context, curve
from qmsup.transport.dealer import DealerSocket
from qmsup.transport.remote import Doors, RemoteDoor
from qmsup.transport.router import RouterSocket
from qmsup.units import Seconds
from tests.support.servers import free_port

QUESTION = b'{"v": 1}'


@pytest.fixture
def endpoint() -> str:
    return f"tcp://127.0.0.1:{free_port()}"


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
    context.destroy()


def _client(endpoint: str, keys: Path, name: str, server: str = "server") -> DealerSocket:
    own, trusted = curve.read_keys(keys / f"{name}.key_secret"), keys / f"{server}.key"
    return DealerSocket(
        endpoint,
        name.encode(),
        secure=lambda socket: curve.connect_with(socket, own, curve.read_public(trusted)),
    )


def _received(door: RemoteDoor, within: float) -> list[tuple[bytes, list[bytes]]]:
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        if received := door.receive():
            return received
        time.sleep(0.01)
    return []


def test_a_known_key_asks_and_is_answered(door: RemoteDoor, endpoint: str, keys: Path) -> None:
    ann = _client(endpoint, keys, "ann")
    ann.send([b"\x93 of a worker", QUESTION])

    [(identity, frames)] = _received(door, 10.0)
    assert frames == [QUESTION], "what is no question is dropped"
    assert door.send(identity, b"answer")

    assert ann.wait(Seconds(10.0))
    assert ann.receive() == [b"answer"]
    ann.close()


def test_an_unknown_key_and_none_at_all_are_not_heard(
    door: RemoteDoor, endpoint: str, keys: Path
) -> None:
    others = [
        _client(endpoint, keys, "eve"),
        _client(endpoint, keys, "ann", server="eve"),
        DealerSocket(endpoint, b"nobody"),
    ]
    for other in others:
        other.send([QUESTION])

    assert _received(door, 1.0) == []

    ann = _client(endpoint, keys, "ann")
    ann.send([QUESTION])
    assert len(_received(door, 10.0)) == 1
    for each in (*others, ann):
        each.close()


def test_a_stranger_cannot_fill_the_memory(door: RemoteDoor, endpoint: str, keys: Path) -> None:
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"CURVE".ljust(20, b"\0") + bytes(32)
    huge = b"\x06" + (2**33).to_bytes(8, "big")
    with socket.create_connection((host, int(port)), timeout=10.0) as stranger:
        stranger.sendall(greeting + huge)

        with contextlib.suppress(ConnectionResetError):
            while stranger.recv(4096):  # its own greeting, and then the end
                pass

    ann = _client(endpoint, keys, "ann")
    ann.send([QUESTION])
    assert _received(door, 10.0), "who has a key is heard all the same"
    ann.close()


@pytest.mark.parametrize("text", ["", "nonsense", "public-key", "public-key = 'short'", None])
def test_a_file_that_is_no_key_keeps_nobody_out(
    endpoint: str, keys: Path, text: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = keys / "clients" / "aaa.key"
    if text is None:
        wrong.mkdir()
    else:
        wrong.write_text(text)
    door = RemoteDoor(endpoint, secret_key=keys / "server.key_secret", clients=keys / "clients")
    ann = _client(endpoint, keys, "ann")
    ann.send([QUESTION])

    assert _received(door, 10.0)
    assert ("control.key_unreadable" in caplog.messages) == ("short" not in (text or ""))
    ann.close()
    door.close()
    context.destroy()


def test_an_answer_goes_out_by_the_door_that_its_question_came_in_by(
    door: RemoteDoor, endpoint: str, keys: Path, places: Path
) -> None:
    local = RouterSocket(f"ipc://{places}/s.sock")
    near = DealerSocket(f"ipc://{places}/s.sock", b"ann")  # the same name, and another one
    far = _client(endpoint, keys, "ann")
    doors = Doors(local, door)
    far.send([QUESTION])
    [(identity, _)] = _received(door, 10.0)
    near.send([QUESTION])
    while not (received := local.receive()):
        time.sleep(0.01)

    assert doors.send(identity, b"far")
    assert doors.send(received[0][0], b"near")

    for peer, answer in ((far, b"far"), (near, b"near")):
        assert peer.wait(Seconds(10.0))
        assert peer.receive() == [answer]
        peer.close()
    local.close()


def test_without_a_key_it_is_not_opened(endpoint: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="qmsup keys"):
        RemoteDoor(endpoint, secret_key=tmp_path / "none", clients=tmp_path)
    context.destroy()
