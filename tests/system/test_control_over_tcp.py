"""A whole box controlled over TCP, by who has a key."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from qmsup.control.client import Client
from qmsup.errors import SchedulerUnavailableError
from qmsup.transport import context, curve
from qmsup.units import Seconds
from tests.support.box import fake, serving
from tests.support.servers import free_port

pytestmark = pytest.mark.system


@pytest.fixture
def keys(tmp_path: Path) -> Iterator[Path]:
    for name in ("server", "ann", "eve"):
        curve.make_keys(tmp_path, name)
    curve.allow(tmp_path / "ann.key", tmp_path / "clients")
    yield tmp_path
    context.destroy()


def test_a_known_key_may_load_a_model_and_an_unknown_one_is_not_heard(keys: Path) -> None:
    endpoint = f"tcp://127.0.0.1:{free_port()}"
    control = {
        "bind": endpoint,
        "curve": {"secretKey": f"{keys}/server.key_secret", "clients": f"{keys}/clients"},
    }
    server = keys / "server.key"
    with serving({"m": fake()}, control=control):
        with Client(
            endpoint, Seconds(30.0), own_key=keys / "ann.key_secret", server_key=server
        ) as ann:
            assert ann.ask("load", model="m")["text"] == "m is ready"
            assert ann.ask("status")["epoch"] == 1
        with (
            Client(
                endpoint, Seconds(1.0), own_key=keys / "eve.key_secret", server_key=server
            ) as eve,
            pytest.raises(SchedulerUnavailableError),
        ):
            eve.ask("status")
