import os
import socket
from contextlib import closing

import pytest

from qmsup.errors import ChildError
from qmsup.processes import ports
from qmsup.processes.ports import Owner, PortPool, is_taken, owner_of
from tests.support.children import FIRST_PORT
from tests.support.descriptors import no_descriptor_left


def test_ports_go_upward_and_are_not_handed_out_twice() -> None:
    pool = PortPool(FIRST_PORT)

    assert [pool.take(), pool.take()] == [FIRST_PORT, FIRST_PORT + 1]


def test_listeners_ports_are_passed_over() -> None:
    assert PortPool(FIRST_PORT, reserved=[FIRST_PORT, FIRST_PORT + 1]).take() == FIRST_PORT + 2


def test_others_may_be_passed_over_later() -> None:
    pool = PortPool(FIRST_PORT, reserved=[FIRST_PORT])
    pool.reserve([FIRST_PORT + 1])

    assert [pool.take(), pool.take()] == [FIRST_PORT, FIRST_PORT + 2]


@pytest.mark.parametrize("shares", [False, True])
def test_a_port_in_use_is_passed_over_even_when_its_owner_shares_it(shares: bool) -> None:
    with closing(socket.create_server(("127.0.0.1", FIRST_PORT), reuse_port=shares)):
        assert PortPool(FIRST_PORT).take() == FIRST_PORT + 1


def test_a_port_whose_old_connections_linger_is_free() -> None:
    with socket.create_server(("127.0.0.1", FIRST_PORT)) as server:
        client = socket.create_connection(("127.0.0.1", FIRST_PORT))
        accepted, _ = server.accept()
        accepted.close()  # the side that closes first keeps the port in TIME_WAIT
        client.close()

    assert PortPool(FIRST_PORT).take() == FIRST_PORT


def test_a_port_given_back_comes_last_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_SPAN", 3)
    pool = PortPool(FIRST_PORT)
    first = pool.take()
    pool.give_back(first)
    pool.give_back(1)

    assert [pool.take(), pool.take(), pool.take()] == [FIRST_PORT + 1, FIRST_PORT + 2, first]
    with pytest.raises(ChildError, match=r"no free port from .*: set startPort"):
        pool.take()


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_our_own_listener_is_ours(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, FIRST_PORT), family=family):
        assert owner_of(FIRST_PORT, [1, os.getpid()]) is Owner.OURS
        assert owner_of(FIRST_PORT, []) is Owner.FOREIGN


def test_a_port_that_nobody_listens_on_is_nobodys() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))

        assert owner_of(bound.getsockname()[1], [os.getpid()]) is Owner.NOBODY


def test_a_port_that_another_listens_on_is_taken_from_a_child() -> None:
    with socket.create_server(("127.0.0.1", FIRST_PORT)):
        assert is_taken(FIRST_PORT, [1])
        assert not is_taken(FIRST_PORT, [os.getpid()])

    assert not is_taken(FIRST_PORT, [1])


def test_a_port_that_another_sends_from_is_taken_too() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        port = client.getsockname()[1]  # the kernel's choice
        assert owner_of(port, [1]) is Owner.NOBODY
        assert is_taken(port, [1])


def test_without_a_descriptor_no_port_is_handed_out_and_nobody_is_called_a_thief() -> None:
    with closing(socket.create_server(("127.0.0.1", FIRST_PORT))), no_descriptor_left():
        with pytest.raises(ChildError, match="raise the limit of open files"):
            PortPool(FIRST_PORT).take()
        assert owner_of(FIRST_PORT, [os.getpid()]) is Owner.NOBODY
        assert not is_taken(FIRST_PORT, [os.getpid()])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else and come back")
def test_ports_for_root_alone_are_passed_over() -> None:
    os.setresuid(65534, 65534, 0)
    try:
        assert PortPool(1022).take() >= 1024
    finally:
        os.setresuid(0, 0, 0)
