import socket
import tempfile
import threading
from collections.abc import Iterator

import pytest

from qmsup.listener.relay.sending import Sending

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    near, far = socket.socketpair()
    near.setblocking(False)
    with near, far:
        yield near, far


def _sent(pair: Pair, sending: Sending) -> bytes:
    near, far = pair
    pieces: list[bytes] = []

    def read() -> None:
        while piece := far.recv(10_000):
            pieces.append(piece)

    reader = threading.Thread(target=read)
    reader.start()
    done = False
    while not done:
        try:
            done = sending.go_on(near)
        except BlockingIOError:
            continue
    near.shutdown(socket.SHUT_WR)
    reader.join(10)
    return b"".join(pieces)


@pytest.mark.parametrize("size", [0, 100, 65_536, 65_537, 3_000_000])
def test_head_and_body_arrive_in_order_whatever_the_socket_takes(pair: Pair, size: int) -> None:
    body = bytes(range(251)) * (size // 251) + b"x" * (size % 251)

    assert _sent(pair, Sending(b"head\r\n\r\n", body)) == b"head\r\n\r\n" + body


@pytest.mark.parametrize("size", [0, 100, 3_000_000])
def test_a_body_in_a_file_is_sent_from_its_start(pair: Pair, size: int) -> None:
    with tempfile.TemporaryFile() as file:
        file.write(b"y" * size)

        assert _sent(pair, Sending(b"head", file)) == b"head" + b"y" * size


def test_nothing_has_begun_until_the_socket_took_something(pair: Pair) -> None:
    near, _ = pair
    sending = Sending(b"head", b"")
    before = sending.has_begun

    assert sending.go_on(near)
    assert not before
    assert sending.has_begun


def test_a_file_that_shrank_is_an_error(pair: Pair) -> None:
    near, _ = pair
    with tempfile.TemporaryFile() as file:
        file.write(b"y" * 10)
        sending = Sending(b"head", file)
        file.truncate(0)

        with pytest.raises(OSError, match="cut short"):
            sending.go_on(near)
