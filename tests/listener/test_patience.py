import socket
import struct

import pytest

from qmsup.listener import patience
from qmsup.listener.patience import ImpatientUnreader


def test_a_client_that_stalls_in_its_request_counts_as_gone() -> None:
    near, far = socket.socketpair()
    with near, far:
        near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 20_000))
        far.send(b"POST")
        unreader = ImpatientUnreader(near)

        assert [unreader.chunk(), unreader.chunk()] == [b"POST", b""]
        assert unreader.has_given_up
        far.send(b" its rest")
        assert unreader.chunk() == b""


def test_a_client_that_dawdles_counts_as_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("qmsup.listener.patience.time.monotonic", lambda: clock[0])
    near, far = socket.socketpair()
    with near, far:
        unreader = ImpatientUnreader(near)
        clock[0] = 59.0
        far.send(b"a" * 8192)
        assert unreader.chunk() == b"a" * 8192
        clock[0] = 61.0  # what came bought it two seconds more
        far.send(b"b")
        assert unreader.chunk() == b"b"
        clock[0] = 63.0
        far.send(b"c")
        assert unreader.chunk() == b""
        assert unreader.has_given_up


def test_each_request_has_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("qmsup.listener.patience.time.monotonic", lambda: clock[0])
    near, far = socket.socketpair()
    with near, far:
        unreader = ImpatientUnreader(near)
        clock[0] = 100.0
        unreader.begin()
        far.send(b"a")
        assert unreader.chunk() == b"a"


def test_accepted_sockets_have_the_settings_of_the_listening_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        patience.set_up(listening)
        with socket.create_connection(listening.getsockname()):
            accepted, _ = listening.accept()
            with accepted:
                for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
                    told = accepted.getsockopt(socket.SOL_SOCKET, option, 16)
                    assert struct.unpack("ll", told)[0] == 60
                assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_unix_socket_has_none_of_it() -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        patience.set_up(listening)
        assert listening.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 0
