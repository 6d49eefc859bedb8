"""What a scheduler that starts goes on with, and what it ends."""

import json
import os
import signal
from pathlib import Path

import pytest

from qmsup import places as places_of
from qmsup.control.client import Client
from qmsup.daemon.exits import Exit
from qmsup.units import Seconds
from tests.support.box import fake, until
from tests.support.children import is_alive
from tests.support.daemons import configuration, qmsup
from tests.support.scheduler_actor import ControlPeer

pytestmark = pytest.mark.system

STARTED = '"scheduler.started"'


def _running_child(config: Path) -> dict[str, int]:
    """Starts a scheduler, has m loaded, kills the scheduler, and tells of the child."""
    with qmsup("scheduler", config) as first:
        first.says(STARTED)
        with Client(timeout=Seconds(30.0)) as client:
            client.ask("load", model="m")
            (child,) = client.ask("running")["running"]
        until(lambda: _record()["is_ready"])
        first.process.kill()
        first.ends()
    return dict(child)


def _records() -> list[dict[str, object]]:
    paths = (places_of.state_dir() / "children").glob("*.json")
    return [json.loads(path.read_text()) for path in paths]


def _record() -> dict[str, object]:
    [record] = _records()
    return record


def test_it_goes_on_with_the_children_of_a_killed_one(places: Path) -> None:
    config = configuration(places, {"m": fake()})
    child = _running_child(config)

    with qmsup("scheduler", config) as second:
        second.says(STARTED)
        with Client(timeout=Seconds(30.0)) as client:
            (same,) = client.ask("running")["running"]
            assert (same["pid"], same["port"], same["state"]) == (
                child["pid"],
                child["port"],
                "ready",
            )
            assert client.ask("load", model="m")["text"] == "m is ready"
            client.ask("unload", models=["m"])
        assert not is_alive(child["pid"])
        assert second.stop() == Exit.OK


def test_it_goes_on_with_a_child_that_the_full_disk_took_no_record_of(places: Path) -> None:
    config = configuration(places, {"m": fake()})
    child = _running_child(config)
    for record in (places_of.state_dir() / "children").iterdir():
        record.unlink()

    with qmsup("scheduler", config) as second:
        second.says(STARTED)
        until(lambda: _record()["pid"] == child["pid"])  # there is room now
        with Client(timeout=Seconds(30.0)) as client:
            (same,) = client.ask("running")["running"]
        assert (same["pid"], same["state"]) == (child["pid"], "ready")
        assert second.stop() == Exit.OK
    assert not is_alive(child["pid"])


def test_a_child_whose_model_is_configured_no_longer_is_ended(places: Path) -> None:
    child = _running_child(configuration(places, {"m": fake()}))

    with qmsup("scheduler", configuration(places, {"other": fake()})) as second:
        second.says(STARTED)
        assert not is_alive(child["pid"])
        assert second.stop() == Exit.OK


def test_it_goes_on_with_a_child_that_is_too_busy_to_answer(places: Path) -> None:
    config = configuration(places, {"m": fake(unloadTimeout=1)})
    child = _running_child(config)
    os.kill(child["pid"], signal.SIGUSR2)

    with qmsup("scheduler", config) as second:
        second.says(STARTED)
        assert '"leftover.silent"' in second.log()
        with Client(timeout=Seconds(30.0)) as client:
            (same,) = client.ask("running")["running"]
        assert (same["pid"], same["state"]) == (child["pid"], "ready")
        assert second.stop() == Exit.OK
    assert not is_alive(child["pid"])


def test_a_child_that_says_it_is_not_ready_is_ended(places: Path) -> None:
    child = _running_child(configuration(places, {"m": fake()}))
    asks_else = {"m": fake(checkEndpoint="/there-is-none")}

    with qmsup("scheduler", configuration(places, asks_else)) as second:
        second.says(STARTED)
        assert '"leftover.unhealthy"' in second.log()
        assert not is_alive(child["pid"])
        assert second.stop() == Exit.OK


def test_a_child_that_a_signal_stopped_is_ended(places: Path) -> None:
    config = configuration(places, {"m": fake()})
    child = _running_child(config)
    os.kill(child["pid"], signal.SIGSTOP)

    with qmsup("scheduler", config) as second:
        second.says(STARTED)
        assert "leftover.unhealthy" in second.log()
        assert not is_alive(child["pid"])
        assert second.stop() == Exit.OK


def test_children_that_signals_stopped_are_ended_within_one_grace(places: Path) -> None:
    names = ("a", "b", "c")
    config = configuration(places, {name: fake() for name in names}, vramBudgetGB=20)
    with qmsup("scheduler", config) as first:
        first.says(STARTED)
        with Client(timeout=Seconds(30.0)) as client:
            for name in names:
                client.ask("load", model=name)
            children = [model["pid"] for model in client.ask("running")["running"]]
        until(lambda: all(record["is_ready"] for record in _records()))
        first.process.kill()
        first.ends()
    for pid in children:
        os.kill(pid, signal.SIGSTOP)

    with qmsup("scheduler", config) as second:
        second.says(STARTED)
        assert second.log().count("leftover.unhealthy") == len(names)
        assert not any(map(is_alive, children))
        assert second.stop() == Exit.OK


def test_a_stop_that_was_begun_is_finished(places: Path) -> None:
    config = configuration(places, {"m": fake("--ignore-term", unloadTimeout=600)})
    with qmsup("scheduler", config) as first:
        first.says(STARTED)
        with Client(timeout=Seconds(30.0)) as client:
            client.ask("load", model="m")
            (child,) = client.ask("running")["running"]
        peer = ControlPeer("ctl-1-abc")
        peer.send("unload", {"models": ["m"]})
        until(lambda: _record()["is_ready"] is False)
        peer.close()
        first.process.kill()
        first.ends()

    with qmsup("scheduler", config) as second:
        second.says(STARTED)
        assert not is_alive(child["pid"])
        assert second.stop() == Exit.OK


def test_children_are_kept_where_the_configuration_says_so(places: Path) -> None:
    config = configuration(places, {"m": fake()}, onExit="keep")
    with qmsup("scheduler", config) as first:
        first.says(STARTED)
        with Client(timeout=Seconds(30.0)) as client:
            client.ask("load", model="m")
            (child,) = client.ask("running")["running"]
        assert first.stop(signal.SIGTERM) == Exit.OK
    assert is_alive(child["pid"])

    with qmsup("scheduler", configuration(places, {"m": fake()})) as second:
        second.says(STARTED)
        with Client(timeout=Seconds(30.0)) as client:
            (same,) = client.ask("running")["running"]
        assert same["pid"] == child["pid"]
        assert second.stop() == Exit.OK
    assert not is_alive(child["pid"])
