import os
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from qmsup.processes import listening
from qmsup.processes.listening import inodes_in_proc, listening_inodes
from qmsup.processes.procfs import socket_inodes
from tests.support.children import FIRST_PORT

Look = Callable[[int], set[str]]
BOTH = pytest.mark.parametrize("look", [listening_inodes, inodes_in_proc])


@contextmanager
def listener(host: str, *, shared: bool = False) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with closing(
        socket.create_server((host, FIRST_PORT), family=family, reuse_port=shared)
    ) as server:
        yield server


@BOTH
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_what_listens_here_is_found_by_the_number_its_process_has_for_it(
    look: Look, host: str
) -> None:
    with listener(host):
        (inode,) = look(FIRST_PORT)

        assert inode in socket_inodes(os.getpid())
    assert look(FIRST_PORT) == set()


@BOTH
def test_two_that_share_a_port_are_both_found(look: Look) -> None:
    with listener("127.0.0.1", shared=True), listener("127.0.0.1", shared=True):
        assert len(look(FIRST_PORT)) == 2


@BOTH
def test_connections_and_other_ports_and_addresses_do_not_count(look: Look) -> None:
    with listener("127.0.0.2"), socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            assert look(FIRST_PORT) == set()
            assert len(look(port)) == 1


def test_without_netlink_the_table_in_proc_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "_NETLINK_SOCK_DIAG", 99)  # a protocol no kernel has

    with listener("127.0.0.1"):
        assert listening_inodes(FIRST_PORT) == inodes_in_proc(FIRST_PORT) != set()


def test_a_kernel_that_refuses_the_question_is_asked_by_proc(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listening, "_SOCK_DIAG_BY_FAMILY", 77)  # a message no kernel knows

    with listener("127.0.0.1"):
        assert len(listening_inodes(FIRST_PORT)) == 1
