import errno
import socket
from pathlib import Path

import pytest

from qmsup.daemon.addresses import problem_with, problems_with_control
from qmsup.ids import ListenerName
from qmsup.spec import ControlSpec, ListenerSpec
from qmsup.transport import curve
from tests.support.servers import free_port


def _control(keys: Path, port: int, host: str = "127.0.0.1") -> ControlSpec:
    return ControlSpec(
        endpoint=f"tcp://{host}:{port}", secret_key=str(keys / "s.key_secret"), clients=str(keys)
    )


def test_a_door_that_can_be_opened_has_no_problem(tmp_path: Path) -> None:
    curve.make_keys(tmp_path, "s")
    assert list(problems_with_control(None)) == []
    assert list(problems_with_control(_control(tmp_path, free_port()))) == []
    assert list(problems_with_control(_control(tmp_path, free_port(), "[::1]"))) == []


def test_an_address_that_is_taken_and_a_key_that_is_none_are_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        key, address = problems_with_control(_control(tmp_path, server.getsockname()[1]))

    assert key.startswith(f"control.curve.secretKey: cannot read the key file {tmp_path}/s.key")
    assert address.startswith("control.bind: cannot listen on tcp://127.0.0.1:")
    assert address.endswith("choose another address")


@pytest.mark.parametrize(
    ("host", "says"),
    [
        ("192.0.2.1", "choose an address of this machine (ip addr)"),
        ("a" * 70, "that name has none"),
        ("ä" * 70, "no name of a machine"),
    ],
)
def test_where_nobody_uses_an_address_it_is_not_said_to_stop_that(host: str, says: str) -> None:
    told = problem_with(ListenerSpec(name=ListenerName("main"), host=host, port=8080))

    assert told is not None
    assert says in told
    assert "ss -ltnp" not in told


def test_an_address_of_a_kind_that_the_machine_has_not_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")

    monkeypatch.setattr(socket, "socket", refuse)

    told = problem_with(ListenerSpec(name=ListenerName("main"), host="::1", port=8080))

    assert told is not None
    assert "this machine has none of that kind" in told
