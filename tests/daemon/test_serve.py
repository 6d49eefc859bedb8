"""`qmsup serve` as an operator meets it: what it restarts, how it stops, and what it refuses to start with."""

import json
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import requests

from qmsup.daemon.exits import Exit
from qmsup.daemon.serve import check_ports
from qmsup.errors import ConfigError
from qmsup.ids import ListenerName
from qmsup.spec import ListenerSpec, Spec
from qmsup.transport import curve
from tests.support.box import Box, fake, serving, until
from tests.support.daemons import configuration, qmsup

pytestmark = pytest.mark.system


def answers(box: Box, model: str = "m") -> bool:
    """Whether a request is served; while a part is restarted it may not be."""
    try:
        return box.chat(model).status_code == 200
    except requests.ConnectionError:
        return False


def part(box: Box, *words: str) -> psutil.Process:
    """The member of `serve` with this command line."""
    members = psutil.Process(box.process.pid).children()
    (found,) = [p for p in members if all(word in p.cmdline() for word in words)]
    return found


def test_a_killed_part_is_started_again_and_the_others_stay() -> None:
    with serving({"m": fake()}, listeners={"main": {}, "other": {}}) as box:
        assert answers(box)
        scheduler, child = part(box, "scheduler"), psutil.Process(box.model("m")["pid"])
        main, other = part(box, "listener", "main"), part(box, "listener", "other")

        main.kill()
        until(lambda: '"worker.lost"' in box.log())
        until(lambda: answers(box))
        assert part(box, "listener", "main") != main
        scheduler.kill()
        until(lambda: '"epoch": 2' in box.log())
        until(lambda: answers(box))

        assert part(box, "scheduler") != scheduler
        assert child.ppid() == box.process.pid
        child.kill()
        until(lambda: not psutil.pid_exists(child.pid), what="it is reaped")
        assert part(box, "listener", "other") == other
        died = [(line["name"], line["signal"]) for line in box.decisions("member.died")]
        assert died == [("listener main", "SIGKILL"), ("scheduler", "SIGKILL")]
        until(lambda: len(box.told("status")["listeners"]) == 2)

        assert box.stop(signal.SIGTERM) == Exit.OK
        assert not box.processes()


def test_a_listener_that_died_with_a_stream_gives_its_port_free() -> None:
    with (
        serving({"m": fake("--event-interval 0.05")}) as box,
        box.chat("m", stream=True, max_tokens=10_000) as answer,
    ):
        assert next(answer.iter_lines())
        part(box, "listener", "main").kill()

        until(lambda: answers(box), within=20)


def test_however_it_was_started_it_serves_and_starts_again_what_dies() -> None:
    """With signals ignored, no room for its log, and nothing to read from and to write to."""

    def command(_: Path) -> list[str]:
        starting = "trap '' CHLD HUP; exec \"$0\" -m qmsup serve <&- >&- 2>/dev/full"
        return ["bash", "-c", starting, sys.executable]

    with serving({"m": fake()}, command=command) as box:
        assert answers(box)
        standard = Path(f"/proc/{part(box, 'scheduler').pid}/fd")
        leads_to = [str((standard / str(number)).readlink()) for number in range(3)]
        assert leads_to == ["/dev/null", "/dev/null", "/dev/full"]

        box.kill_scheduler()


def test_models_of_a_scheduler_that_dies_while_it_is_to_end_end_all_the_same() -> None:
    with (
        serving({"m": fake("--event-interval 0.05")}, shutdownDrainMs=600_000) as box,
        box.chat("m", stream=True, max_tokens=100_000) as answer,
    ):
        lines = answer.iter_lines()
        assert next(lines)
        box.process.send_signal(signal.SIGTERM)
        until(lambda: "scheduler.told_to_end" in box.log())

        part(box, "scheduler").kill()

        assert box.process.wait(20) == Exit.OK
        assert not box.processes()
        (told,) = box.decisions("serve.stopped_models")
        assert told["models"] == "m"


def test_a_second_signal_makes_it_hurry() -> None:
    with serving({"m": fake("--event-interval 0.05")}, shutdownDrainMs=600_000) as box:
        with box.chat("m", stream=True, max_tokens=100_000) as answer:
            lines = answer.iter_lines()
            assert next(lines)
            box.process.send_signal(signal.SIGINT)
            until(lambda: "scheduler.told_to_end" in box.log())
            assert box.process.poll() is None

            assert box.stop(signal.SIGTERM) == Exit.OK
        assert '"serve.hurrying"' in box.log()


def test_beside_another_scheduler_nothing_is_started(places: Path) -> None:
    config = configuration(places, {"m": fake()})
    with qmsup("scheduler", config) as alone:
        alone.says('"scheduler.started"')
        before = sorted(places.rglob("*"))

        with qmsup("serve", config) as served:
            assert served.ends() == Exit.UNUSABLE

        told = served.log().splitlines()[-1]
        assert f"another scheduler (pid {alone.process.pid}) uses {places}/state since 20" in told
        assert "member.started" not in served.log()
        assert sorted(p for p in places.rglob("*") if p != served.output) == before
        assert alone.stop() == Exit.OK


def test_a_scheduler_that_can_never_start_ends_it(places: Path, taken: int) -> None:
    curve.make_keys(places / "keys", "server")
    control = {
        "bind": f"tcp://127.0.0.1:{taken}",
        "curve": {
            "secretKey": f"{places}/keys/server.key_secret",
            "clients": f"{places}/keys",
        },
    }
    config = configuration(places, {"m": fake()}, control=control)

    with qmsup("serve", config) as served:
        assert served.ends() == Exit.UNUSABLE

    assert f"control.bind: cannot listen on tcp://127.0.0.1:{taken}" in served.log()
    assert served.log().splitlines()[-1] == "qmsup: the scheduler cannot start: it says why above"
    assert "serve.stopped" in served.log()
    assert "Traceback" not in served.log()


def test_what_stands_in_the_way_of_a_later_scheduler_may_pass() -> None:
    with serving({"m": fake()}) as box:
        assert answers(box)
        epoch = box.folder / "state" / "epoch"
        aside = epoch.rename(epoch.with_name("aside"))
        epoch.mkdir()

        part(box, "scheduler").kill()
        until(lambda: f"{epoch} is in the way of a file and is none: remove it" in box.log())
        epoch.rmdir()
        aside.rename(epoch)

        until(lambda: answers(box), within=20)
        assert '"epoch": 2' in box.log()


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_what_stands_in_the_way_is_told_before_anything_starts(places: Path, taken: int) -> None:
    config = configuration(places, {"m": fake()})
    content = json.loads(config.read_text())
    free = content["listeners"]["main"]["bind"]

    content["listeners"]["main"]["bind"] = f"127.0.0.1:{taken}"
    config.write_text(json.dumps(content))
    with qmsup("serve", config) as served:
        assert served.ends() == Exit.UNUSABLE
    assert f"listeners.main.bind: cannot listen on 127.0.0.1:{taken}" in served.log()
    assert "choose another address" in served.log()

    content["listeners"]["main"]["bind"] = free
    config.write_text(json.dumps(content))
    (places / "run").touch()
    with qmsup("serve", config) as served:
        assert served.ends() == Exit.UNUSABLE
    assert "set QMSUP_RUNTIME_DIR to a folder of yours" in served.log()
    assert "member.started" not in served.log()


def spec_listening_on(*addresses: tuple[str, int]) -> Spec:
    listeners = {
        ListenerName(f"l{i}"): ListenerSpec(name=ListenerName(f"l{i}"), host=host, port=port)
        for i, (host, port) in enumerate(addresses)
    }
    return Spec(models={}, listeners=listeners)


def test_every_address_that_cannot_be_had_is_named(taken: int) -> None:
    spec = spec_listening_on(
        ("127.0.0.1", taken), ("127.0.0.1", 0), ("nowhere.invalid", 8080), ("192.0.2.7", 8080)
    )

    with pytest.raises(ConfigError) as refused:
        check_ports(spec)

    named = [problem.partition(".bind: ")[0] for problem in refused.value.problems]
    assert named == ["listeners.l0", "listeners.l2", "listeners.l3"]


def test_addresses_that_can_be_had_are_no_problem() -> None:
    check_ports(spec_listening_on(("127.0.0.1", 0), ("localhost", 0)))
    if Path("/proc/net/if_inet6").exists():
        check_ports(spec_listening_on(("::1", 0)))
