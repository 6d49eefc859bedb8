"""Strangers who fill the door are shut out until they leave; who is inside stays."""

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qmsup.transport import context, crowd, curve, remote
from qmsup.transport.dealer import DealerSocket
from qmsup.transport.remote import RemoteDoor
from tests.support.servers import free_port

_WITHIN = 20.0
_MOST = 6


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    for name in ("server", "ann"):
        curve.make_keys(tmp_path, name)
    curve.allow(tmp_path / "ann.key", tmp_path / "clients")
    return tmp_path


@pytest.fixture
def door(port: int, keys: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteDoor]:
    monkeypatch.setattr(remote, "_MOST", _MOST)
    made = RemoteDoor(
        f"tcp://127.0.0.1:{port}",
        secret_key=keys / "server.key_secret",
        clients=keys / "clients",
    )
    yield made
    made.close()
    context.destroy()


def _ann(port: int, keys: Path) -> DealerSocket:
    own, server = curve.read_keys(keys / "ann.key_secret"), curve.read_public(keys / "server.key")
    return DealerSocket(
        f"tcp://127.0.0.1:{port}",
        b"ann",
        secure=lambda made: curve.connect_with(made, own, server),
    )


def _until(door: RemoteDoor, happens: Callable[[], bool]) -> None:
    """Look at the door, as its owner does, until something happens."""
    deadline = time.monotonic() + _WITHIN
    while not happens():
        assert time.monotonic() < deadline, "it did not happen"
        door.receive()
        time.sleep(0.01)


def _is_heard(door: RemoteDoor, ann: DealerSocket) -> bool:
    ann.send([b"{}"])
    time.sleep(0.05)
    return bool(door.receive())


def _crowd(door: RemoteDoor, port: int) -> Iterator[socket.socket]:
    for _ in range(_MOST + 1):
        yield socket.create_connection(("127.0.0.1", port), timeout=_WITHIN)


def test_a_crowd_is_sent_away_and_who_has_a_key_comes_again(
    door: RemoteDoor, port: int, keys: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    ann = _ann(port, keys)
    _until(door, lambda: _is_heard(door, ann))
    strangers = [*_crowd(door, port)]

    _until(door, lambda: "control.crowded" in caplog.messages)
    for stranger in strangers:
        with contextlib.suppress(ConnectionResetError):
            while stranger.recv(4096):  # its greeting, and then the end
                pass
        stranger.close()

    _until(door, lambda: _is_heard(door, ann))
    assert "control.open_again" in caplog.messages
    ann.close()


def test_who_leaves_is_not_counted(
    door: RemoteDoor, port: int, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3 * _MOST):
        socket.create_connection(("127.0.0.1", port), timeout=_WITHIN).close()
        _until(door, lambda: len(door._crowd._connected) <= 1)

    assert "control.crowded" not in caplog.messages


def test_an_address_that_another_has_meanwhile_is_tried_again(
    door: RemoteDoor, port: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crowd, "_PAUSE", 0.1)
    caplog.set_level("INFO")
    strangers = [*_crowd(door, port)]
    _until(door, lambda: "control.crowded" in caplog.messages)
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        monkeypatch.setattr(crowd, "_PAUSE", 0.0)
        for _ in range(20):
            door.receive()
            time.sleep(0.02)
        assert "control.open_again" not in caplog.messages

    _until(door, lambda: "control.open_again" in caplog.messages)
    for stranger in strangers:
        stranger.close()
