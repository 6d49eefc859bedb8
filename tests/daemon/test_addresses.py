import socket
from pathlib import Path

from qmsup.daemon.addresses import problems_with_control
from qmsup.spec import ControlSpec
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
