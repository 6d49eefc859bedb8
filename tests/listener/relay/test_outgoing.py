import select
import socket
from collections.abc import Iterator

import pytest

from qmsup.listener.relay.loop import Loop
from qmsup.listener.relay.outgoing import Outgoing

Ends = tuple[Outgoing, socket.socket, socket.socket, Loop]


@pytest.fixture
def ends() -> Iterator[Ends]:
    loop = Loop()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        loop.watch(ours.fileno(), select.EPOLLRDHUP, lambda _event: None)
        yield Outgoing(loop, ours), ours, theirs, loop
    loop.close()


def test_who_reads_gets_it_at_once(ends: Ends) -> None:
    outgoing, _, theirs, _ = ends

    outgoing.send(b"hello")

    assert theirs.recv(99) == b"hello"
    assert (outgoing.rest, outgoing.sent) == (b"", 5)
    assert not outgoing.is_stalled(1e9)


def test_who_does_not_read_gets_it_later_in_order(ends: Ends) -> None:
    outgoing, _, theirs, loop = ends
    wanted = b"x" * 2_000_000 + b"end"

    outgoing.send(wanted[:-3])
    assert outgoing.rest
    assert not outgoing.go_on()
    outgoing.send(b"end")
    assert outgoing.is_stalled(loop.now + 3600.0)
    got = b""
    while outgoing.rest:
        got += theirs.recv(1 << 20)
        outgoing.go_on()
    while len(got) < len(wanted):
        got += theirs.recv(1 << 20)

    assert got == wanted
    assert outgoing.sent == len(wanted)


def test_who_has_gone_is_an_error(ends: Ends) -> None:
    outgoing, _, theirs, _ = ends
    theirs.close()

    with pytest.raises(OSError, match="Broken pipe"):
        outgoing.send(b"hello")
