import os
import socket
from contextlib import closing

import pytest

from qmsup.errors import ChildError
from qmsup.processes import ports
from qmsup.processes.ports import Owner, PortPool, owner_of


def test_ports_go_upward_and_are_not_handed_out_twice() -> None:
    pool = PortPool(21400)

    assert [pool.take(), pool.take()] == [21400, 21401]


def test_listeners_ports_are_passed_over() -> None:
    assert PortPool(21410, reserved=[21410, 21411]).take() == 21412


@pytest.mark.parametrize("shares", [False, True])
def test_a_port_in_use_is_passed_over_even_when_its_owner_shares_it(shares: bool) -> None:
    with closing(socket.create_server(("127.0.0.1", 21420), reuse_port=shares)):
        assert PortPool(21420).take() == 21421


def test_a_port_whose_old_connections_linger_is_free() -> None:
    with socket.create_server(("127.0.0.1", 21430)) as server:
        client = socket.create_connection(("127.0.0.1", 21430))
        accepted, _ = server.accept()
        accepted.close()  # the side that closes first keeps the port in TIME_WAIT
        client.close()

    assert PortPool(21430).take() == 21430


def test_a_port_given_back_comes_last_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_SPAN", 3)
    pool = PortPool(21440)
    first = pool.take()
    pool.give_back(first)
    pool.give_back(1)

    assert [pool.take(), pool.take(), pool.take()] == [21441, 21442, first]
    with pytest.raises(ChildError, match="no free port from 21440 to 21442: set startPort"):
        pool.take()


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_our_own_listener_is_ours(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 21450), family=family):
        assert owner_of(21450, [1, os.getpid()]) is Owner.OURS
        assert owner_of(21450, []) is Owner.FOREIGN


def test_a_port_that_nobody_listens_on_is_nobodys() -> None:
    assert owner_of(21460, [os.getpid()]) is Owner.NOBODY
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 21460))
        assert owner_of(21460, [os.getpid()]) is Owner.NOBODY
