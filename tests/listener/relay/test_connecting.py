"""The way to an upstream, and how long it may take."""

import socket
import time
from contextlib import closing
from pathlib import Path

import pytest

from qmsup.ids import HostName
from qmsup.listener.relay.connecting import Way, too_late
from qmsup.listener.relay.errands import Errands
from qmsup.listener.relay.loop import Loop
from qmsup.listener.relay.names import Names, Place
from qmsup.listener.relay.order import Remote
from qmsup.listener.relay.sending import Sending
from qmsup.units import Seconds


class Taker:
    """Hears where the way led."""

    def __init__(self, *, turn: int = 0) -> None:
        self.loop = Loop()
        self.errands = Errands(self.loop)
        self.names = Names(self.loop, self.errands)
        self.socks: list[socket.socket] = []
        self.errors: list[OSError] = []
        self.way = Way(self.loop, self.socks.append, self.errors.append, turn=turn)

    def begin(self, where: str) -> "Taker":
        self.way.begin(self.names, where)
        deadline = time.monotonic() + 20
        while not self.socks and not self.errors:
            assert time.monotonic() < deadline
            self.loop.turn(0.1)
        return self

    def close(self) -> None:
        for sock in self.socks:
            sock.close()
        self.errands.close()
        self.loop.close()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_way_leads_to_a_port_of_a_host(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, closing(Taker()) as taker:
        taker.begin(f"{host}:{server.getsockname()[1]}")

        assert not taker.socks[0].getblocking()
        server.settimeout(10)
        accepted, _ = server.accept()
        accepted.close()


def test_a_way_leads_to_a_unix_socket(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as server, closing(Taker()) as taker:
        server.bind(path)
        server.listen()
        assert taker.begin(path).socks
        server.accept()[0].close()


def test_a_unix_socket_that_is_not_there_refuses(tmp_path: Path) -> None:
    with closing(Taker()) as taker:
        (error,) = taker.begin(str(tmp_path / "none")).errors

    assert isinstance(error, ConnectionRefusedError)


@pytest.mark.parametrize("where", ["host-that-is-not.invalid:80", "127.0.0.1:port", ""])
def test_what_is_no_address_is_told(where: str) -> None:
    with closing(Taker()) as taker:
        assert taker.begin(where).errors


def test_of_several_addresses_those_that_cannot_be_tried_are_passed_over(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    gone = Place(socket.AF_UNIX, str(tmp_path / "none"))
    with socket.socket(socket.AF_UNIX) as server, closing(Taker()) as taker:
        server.bind(path)
        server.listen()
        taker.way._take((gone, Place(socket.AF_UNIX, path), gone))

        assert taker.socks


def test_who_gave_up_is_told_nothing() -> None:
    with closing(Taker()) as taker:
        taker.way.give_up()
        taker.way.begin(taker.names, "127.0.0.1:1")

        assert (taker.socks, taker.errors) == ([], [])


_FAR = Remote(
    name=HostName("far"), upstream="", connect_within=Seconds(3.0), answer_within=Seconds(60.0)
)
_FOR_EVER = Remote(name=HostName("far"), upstream="")
_SENT, _UNSENT = False, True

# Where to, whether the request is unsent, how long it has been → what is said.
CASES: list[tuple[Remote | None, bool, float, str]] = [
    (None, _UNSENT, 10.0, ""),
    (None, _UNSENT, 10.1, "no connection within 10 s"),
    (None, _SENT, 10**6, ""),
    (_FAR, _UNSENT, 3.1, "no connection within 3 s"),
    (_FAR, _SENT, 60.0, ""),
    (_FAR, _SENT, 60.1, "no answer within 60 s"),
    (_FOR_EVER, _SENT, 10**6, ""),
]


@pytest.mark.parametrize(("remote", "is_unsent", "waited", "said"), CASES)
def test_what_comes_too_late(
    remote: Remote | None, is_unsent: bool, waited: float, said: str
) -> None:
    sending = Sending(b"head", b"") if is_unsent else None

    assert too_late(sending, remote, waited) == said


def test_a_request_that_is_on_its_way_is_not_late() -> None:
    sending = Sending(b"head", b"")
    sending.has_begun = True

    assert too_late(sending, None, 100.0) == ""
