import socket

from scripts.soaking.onlookers import Onlooker
from tests.support.box import until

_HEAD = b"HTTP/1.1 200 OK\r\n\r\n"


def test_what_it_is_told_is_counted_and_it_comes_again_when_it_is_cut_off() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        onlooker = Onlooker(server.getsockname()[1])
        try:
            for visit in (1, 2):
                wire, _ = server.accept()
                with wire:
                    assert wire.recv(1000).startswith(b"GET /api/events ")
                    wire.sendall(_HEAD + b"data: 1\n\ndata: 2\n\n")
                    until(lambda: onlooker.events == 2 * visit)  # noqa: B023 - asked at once
        finally:
            onlooker.close()

    assert (onlooker.visits, onlooker.events) == (2, 4)


def test_where_nobody_listens_it_waits() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    onlooker = Onlooker(port)
    onlooker.close()

    assert onlooker.visits == 0
