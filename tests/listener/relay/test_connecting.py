"""The way to an upstream, and how long it may take."""

import socket
from pathlib import Path

import pytest

from qmsup.ids import HostName
from qmsup.listener.relay.connecting import Way, too_late
from qmsup.listener.relay.order import Remote
from qmsup.listener.relay.sending import Sending
from qmsup.units import Seconds


def test_a_way_leads_to_a_port_of_a_named_host() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        way = Way(f"localhost:{server.getsockname()[1]}")
        with way.sock:
            way.begin()
            accepted, _ = server.accept()
            accepted.close()

        assert not way.sock.getblocking() or way.sock.fileno() == -1


def test_a_way_leads_to_a_unix_socket(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        way = Way(path)
        with way.sock:
            way.begin()
            server.accept()[0].close()


def test_a_unix_socket_that_is_not_there_refuses(tmp_path: Path) -> None:
    way = Way(str(tmp_path / "none"))

    with way.sock, pytest.raises(ConnectionRefusedError):
        way.begin()


@pytest.mark.parametrize("where", ["host-that-is-not.invalid:80", "127.0.0.1:port", ""])
def test_what_is_no_address_is_told(where: str) -> None:
    with pytest.raises((OSError, ValueError)):
        Way(where)


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
