"""The commands of a person elsewhere, over TCP, against a real scheduler."""

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qmsup import places as where
from qmsup.control import door as door_module
from qmsup.control.door import Door, here
from qmsup.errors import ConfigError, SchedulerUnavailableError
from qmsup.spec import ControlSpec
from qmsup.transport import context, curve
from qmsup.units import Seconds
from qmsup.wire.controlling import Reply
from tests.control.conftest import Ended, Run
from tests.support.scheduler_actor import QUICK, RunningScheduler, models_of, scheduler_of
from tests.support.servers import free_port
from tests.support.standin import StandInScheduler

Far = Callable[..., Ended]


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    for name in ("server", "ann", "eve"):
        curve.make_keys(tmp_path / "keys", name)
    curve.allow(tmp_path / "keys/ann.key", tmp_path / "clients")
    return tmp_path / "keys"


@pytest.fixture
def endpoint(request: pytest.FixtureRequest) -> Iterator[str]:
    yield f"tcp://{getattr(request, 'param', '127.0.0.1')}:{free_port()}"
    context.destroy()


@pytest.fixture
def running(places: Path, keys: Path, endpoint: str) -> Iterator[RunningScheduler]:
    control = ControlSpec(
        endpoint=endpoint,
        secret_key=str(keys / "server.key_secret"),
        clients=str(keys.parent / "clients"),
    )
    with scheduler_of(models_of(QUICK, control=control), places) as scheduler:
        scheduler.client().body(
            "ping"
        )  # it looks at the environment as it starts, which is changed below
        yield scheduler


@pytest.fixture
def far(
    qmsup: Run, keys: Path, endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Far:
    """Runs a command as on a machine without a scheduler of its own, as ann."""

    def run(*arguments: str, own: str = "ann", server: str = "server") -> Ended:
        monkeypatch.setenv("QMSUP_RUNTIME_DIR", str(tmp_path / "elsewhere"))
        flags = ("--key-file", f"{keys}/{own}.key_secret", "--server-key", f"{keys}/{server}.key")
        return qmsup(*arguments, "--connect", endpoint, *flags)

    return run


@pytest.mark.usefixtures("running")
@pytest.mark.parametrize("endpoint", ["127.0.0.1", "[::1]"], indirect=True)
def test_every_kind_of_verb_is_answered(far: Far) -> None:
    assert far("load", "m").out == "m is ready\n"
    assert json.loads(far("ps", "--json").out)["models"][0]["state"] == "ready"
    assert far("pin", "m").code == 0
    assert far("queue").code == 0
    assert far("unload", "nothing").code == 1
    assert far("unload", "m").code == 0


@pytest.mark.usefixtures("running")
def test_one_may_look_on_from_afar(far: Far) -> None:
    assert far("load", "m").code == 0

    assert "decision.swap.started  model=m" in far("events").out
    top = far("top", "--once")
    assert top.code == 0
    assert "m " in top.out
    assert "ready" in top.out


@pytest.mark.usefixtures("running")
def test_the_environment_says_where_as_well(
    qmsup: Run, keys: Path, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QMSUP_RUNTIME_DIR", "/nowhere")
    monkeypatch.setenv("QMSUP_CONTROL", endpoint)
    monkeypatch.setenv("QMSUP_KEY_FILE", f"{keys}/ann.key_secret")
    monkeypatch.setenv("QMSUP_SERVER_KEY", f"{keys}/server.key")

    assert json.loads(qmsup("status", "--json").out)["epoch"] == 3


@pytest.mark.usefixtures("running")
@pytest.mark.parametrize(
    ("names", "says"),
    [
        ({"own": "eve"}, r"does not know the key in .*eve.key_secret: .*`control.curve.clients`"),
        ({"server": "eve"}, r"has not the key in .*eve.key, or is no scheduler"),
    ],
)
def test_a_wrong_key_is_told_which_and_what_to_do(
    far: Far, names: dict[str, str], says: str
) -> None:
    ended = far("ps", **names)

    assert (ended.code, ended.out) == (3, "")
    assert ended.err.count("\n") == 1
    assert re.search(says, ended.err), ended.err


def test_an_answer_in_another_version_says_what_to_do(
    scheduler: StandInScheduler, qmsup: Run
) -> None:
    scheduler.answers("ps", lambda question: Reply(v=2, id=question.id, ok=True))

    ended = qmsup("ps", "--connect", where.scheduler_endpoint())

    assert ended.code == 1
    assert "version 2 of the control protocol" in ended.err
    assert ended.err.count("\n") == 1


def test_nobody_there_is_said_at_once(far: Far) -> None:
    ended = far("ps")

    assert ended.code == 3
    assert "is not running, or not on this port" in ended.err


def test_who_listens_and_says_nothing_is_no_scheduler(far: Far, endpoint: str) -> None:
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    with socket.create_server((host, int(port))):
        ended = far("ps", "--timeout", "0.5")

    assert ended.code == 3
    assert "does not answer" in ended.err


@pytest.mark.parametrize(
    "endpoint",
    [
        "127.0.0.1:5701",
        "tcp://",
        "tcp://host",
        "tcp://h:0",
        "tcp://h:x",
        "http://h:1",
        "tcp://h:1/x",
    ],
)
def test_what_is_no_address_is_a_mistake_of_use(qmsup: Run, endpoint: str) -> None:
    ended = qmsup("ps", "--connect", endpoint)

    assert ended.code == 2
    assert "is no address of a scheduler: write tcp://HOST:PORT" in ended.err


def test_without_keys_nothing_goes_over_a_network(qmsup: Run, keys: Path, endpoint: str) -> None:
    for flags in ((), ("--key-file", f"{keys}/ann.key_secret")):
        ended = qmsup("ps", "--connect", endpoint, *flags)
        assert ended.code == 2
        assert "wants keys: name your secret one with --key-file" in ended.err


def test_a_key_that_cannot_be_read_is_named(qmsup: Run, keys: Path, endpoint: str) -> None:
    flags = ("--key-file", f"{keys}/none", "--server-key", f"{keys}/server.key")

    ended = qmsup("ps", "--connect", endpoint, *flags)

    assert ended.code == 2
    assert f"cannot read the key file {keys}/none" in ended.err


@pytest.mark.usefixtures("running")
def test_the_journal_is_copied_where_it_lies(far: Far) -> None:
    ended = far("explain", "--dump", "-")
    assert ended.code == 2
    assert "the journal lies with the scheduler" in ended.err


@pytest.mark.usefixtures("running")
def test_a_socket_of_another_folder_may_be_named(
    qmsup: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = where.scheduler_endpoint()
    monkeypatch.setenv("QMSUP_RUNTIME_DIR", "/nowhere")

    assert qmsup("ps", "--connect", endpoint).code == 0
    assert qmsup("top", "--once", "--connect", endpoint).code == 0


def test_a_name_that_is_no_machine_is_told(keys: Path) -> None:
    door = Door(endpoint="tcp://no-such-machine.invalid:5701", own_key=keys, server_key=keys)
    with pytest.raises(Exception, match="there is no machine of this name"):
        door.knock(Seconds(5.0))


def test_the_way_of_this_machine_needs_no_keys(places: Path) -> None:
    assert here().endpoint == where.scheduler_endpoint()
    here().check()
    with pytest.raises(ConfigError):
        Door(endpoint="nonsense").check()


@pytest.mark.usefixtures("running")
def test_a_scheduler_that_lets_nobody_in_for_a_moment_is_waited_for(qmsup: Run) -> None:
    path = where.scheduler_socket()
    aside = path.rename(f"{path}.shut")
    opening = threading.Timer(0.2, aside.rename, [path])
    opening.start()

    assert qmsup("ps").code == 0
    opening.join()


def test_what_a_killed_one_left_is_not_waited_for_long(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door_module, "_OPENS_WITHIN", Seconds(0.05))
    (places / "s.shut").touch()

    with pytest.raises(SchedulerUnavailableError, match="is not running"):
        Door(endpoint=f"ipc://{places}/s").knock(Seconds(5.0))
