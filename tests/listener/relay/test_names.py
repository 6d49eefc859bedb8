"""Addresses of upstreams: those that are written out, and names."""

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from qmsup.listener.relay.errands import Errands
from qmsup.listener.relay.loop import Loop
from qmsup.listener.relay.names import KEPT, Names, Places

_WITHIN = 20.0


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture
def names(loop: Loop) -> Iterator[Names]:
    errands = Errands(loop)
    yield Names(loop, errands)
    errands.close()


def _found(loop: Loop, names: Names, where: str) -> Places | OSError:
    found: list[Places | OSError] = []
    names.find(where, found.append)
    deadline = time.monotonic() + _WITHIN
    while not found:
        assert time.monotonic() < deadline
        loop.turn(0.1)
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    ("where", "family", "address"),
    [
        ("127.0.0.1:80", socket.AF_INET, ("127.0.0.1", 80)),
        ("[::1]:9", socket.AF_INET6, ("::1", 9, 0, 0)),
        ("/run/s", socket.AF_UNIX, "/run/s"),
    ],
)
def test_what_is_written_out_is_known_at_once(
    names: Names, where: str, family: socket.AddressFamily, address: object
) -> None:
    found: list[Places | OSError] = []

    names.find(where, found.append)

    (places,) = found
    assert not isinstance(places, OSError)
    assert (places[0].family, places[0].address) == (family, address)


def test_a_name_is_looked_up_in_a_thread(loop: Loop, names: Names) -> None:
    places = _found(loop, names, "localhost:80")

    assert not isinstance(places, OSError)
    assert {"127.0.0.1", "::1"} >= {str(place.address[0]) for place in places}


@pytest.mark.parametrize("where", ["127.0.0.1:port", "", "host", f"{'a' * 64}.example:80"])
def test_what_is_no_address_is_told(loop: Loop, names: Names, where: str) -> None:
    assert isinstance(_found(loop, names, where), OSError)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, threading.Event]]:
    """A server of names that answers, or fails, when it is told to: there is none to be had here."""
    known = {"go": threading.Event(), "fails": threading.Event()}
    asked: list[str] = []

    def answer(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        if host == "127.0.0.9":
            return real(host, port, type=socket.SOCK_STREAM)  # type: ignore[return-value]
        if _.get("flags"):
            raise socket.gaierror(socket.EAI_NONAME, "not in figures")
        asked.append(host)
        assert known["go"].wait(_WITHIN)
        if known["fails"].is_set():
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return real("127.0.0.9", port, type=socket.SOCK_STREAM)  # type: ignore[return-value]

    real = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", answer)
    yield known
    known["go"].set()


def test_others_have_their_turn_while_a_name_is_looked_up(
    loop: Loop, names: Names, slow: dict[str, threading.Event]
) -> None:
    found: list[Places | OSError] = []
    names.find("far.example:80", found.append)
    names.find("far.example:80", found.append)

    loop.turn(0.0)
    assert found == []

    slow["go"].set()
    deadline = time.monotonic() + _WITHIN
    while len(found) < 2:  # both who asked are told, and the server of names was asked once
        assert time.monotonic() < deadline
        loop.turn(0.1)
    assert found[0] is found[1]


def test_what_was_found_counts_on_when_it_cannot_be_found_anew(
    loop: Loop, names: Names, slow: dict[str, threading.Event]
) -> None:
    slow["go"].set()
    first = _found(loop, names, "far.example:80")
    slow["fails"].set()

    assert _found(loop, names, "far.example:80") is first
    loop.now += KEPT + 1  # a while later
    names.find("far.example:80", lambda found: None)
    assert _found(loop, names, "far.example:80") == first
    assert isinstance(_found(loop, names, "other.example:80"), OSError)
