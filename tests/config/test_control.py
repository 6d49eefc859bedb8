"""`control:`: what it means, and what is wrong with it."""

from pathlib import Path

import pytest

from qmsup.config import parse
from qmsup.errors import ConfigError
from qmsup.spec import ControlSpec

_MODELS = "models: {m: {cmd: llama-server -m x}}\n"


def _parse(control: str) -> ControlSpec | None:
    return parse(f"{_MODELS}{control}", name="f", env={}).control


def test_without_it_there_is_no_door() -> None:
    assert _parse("") is None


def test_it_names_an_address_and_keys(tmp_path: Path) -> None:
    key, clients = tmp_path / "server.key_secret", tmp_path / "clients"
    key.touch()
    clients.mkdir()

    spec = _parse(
        f"control: {{bind: 'tcp://127.0.0.1:5701', curve: {{secretKey: {key}, clients: {clients}}}}}"
    )

    assert spec == ControlSpec(
        endpoint="tcp://127.0.0.1:5701", secret_key=str(key), clients=str(clients)
    )


@pytest.mark.parametrize(
    ("control", "said"),
    [
        ("{bind: 'tcp://127.0.0.1:1'}", "f:2: control.curve: TCP needs keys: write secretKey and"),
        ("{bind: 'ipc://x', curve: {secretKey: /x, clients: /y}}", "control.bind: write tcp://"),
        ("{bind: 'tcp://h', curve: {secretKey: /x, clients: /y}}", "control.bind: has no port"),
        (
            "{bind: 'tcp://localhost:5', curve: {secretKey: /x, clients: /y}}",
            "in place of its name",
        ),
        ("{bind: 'tcp://127.0.0.1:5', curve: {secretKey: /none, clients: /y}}", "no file /none"),
        (
            "{bind: 'tcp://127.0.0.1:5', curve: {secretKey: /etc/hostname, clients: /none}}",
            "--allow",
        ),
        ("{bnd: x}", "control.bnd: unknown key; did you mean bind?"),
    ],
)
def test_what_is_wrong_is_told_with_what_to_do(control: str, said: str) -> None:
    with pytest.raises(ConfigError) as told:
        _parse(f"control: {control}")
    assert any(said in line for line in told.value.problems), told.value.problems
