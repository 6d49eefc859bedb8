"""The scheduler process: how it starts, what stands in its way, and with which code it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from qmsup.control.client import Client
from qmsup.daemon.exits import Exit
from qmsup.daemon.main import Ending
from qmsup.units import Seconds
from tests.support.box import fake, until
from tests.support.children import is_alive
from tests.support.daemons import configuration, daemon, qmsup
from tests.support.scheduler_actor import ControlPeer

pytestmark = pytest.mark.system

STARTED = '"scheduler.started"'

BREAKS = """
import sys, threading, time
from pathlib import Path
import pykka
import qmsup.config
from qmsup.actors.scheduler import SchedulerActor
from qmsup.daemon.main import run_scheduler

def meddle():
    while not (found := pykka.ActorRegistry.get_by_class(SchedulerActor)):
        time.sleep(0.01)
    found[0].tell("no event")

config = Path(sys.argv[1])
threading.Thread(target=meddle).start()
sys.exit(run_scheduler(qmsup.config.read_file(config)))
"""

STUCK = """
import time
import pykka
from qmsup.actors import tree

class Stuck(pykka.ThreadingActor):
    def on_stop(self):
        time.sleep(3600)

tree._END_WITHIN = 0.3
Stuck.start()
"""


def test_it_serves_refuses_a_second_one_and_ends_when_told(places: Path) -> None:
    config = configuration(places, {"m": fake()})
    with qmsup("scheduler", config) as first:
        first.says(STARTED)
        with Client(timeout=Seconds(30.0)) as client:
            status = client.ask("status")
            client.ask("load", model="m")
            (child,) = client.ask("running")["running"]
        assert (status["pid"], status["epoch"]) == (first.process.pid, 1)
        assert status["config"] == str(config)

        with qmsup("scheduler", config) as second:
            assert second.ends() == Exit.UNUSABLE
        assert f"another scheduler (pid {first.process.pid}) uses" in second.log()
        assert "QMSUP_STATE_DIR" in second.log()

        assert first.stop(signal.SIGTERM) == Exit.OK
        assert not is_alive(child["pid"])
        assert not (places / "run" / "scheduler.sock").exists()
    assert '"scheduler.told_to_end", "signal": "SIGTERM"' in first.log()
    assert "Traceback" not in first.log()

    with qmsup("scheduler", config) as third:
        third.says('"epoch": 2')
        assert third.stop(signal.SIGINT) == Exit.OK


@pytest.mark.parametrize("verb", ["scheduler", "serve"])
def test_a_reload_asked_for_in_its_first_moment_and_signals_of_no_meaning_end_nothing(
    places: Path, verb: str
) -> None:
    text = configuration(places, {"m": fake()}).read_bytes()
    slow = places / "slow.yaml"
    os.mkfifo(slow)
    with qmsup(verb, slow) as starting:
        with slow.open("wb") as file:  # it is about to read its configuration
            starting.process.send_signal(signal.SIGHUP)
            file.write(text)
        if verb == "scheduler":
            starting.says(STARTED)
        else:  # which reads the file a second time
            starting.says("member.started")
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            starting.process.send_signal(number)
        assert starting.stop(signal.SIGTERM) == Exit.OK


def test_another_ones_sockets_are_not_taken(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = configuration(places, {"m": fake()})
    with qmsup("scheduler", config) as first:
        first.says(STARTED)
        monkeypatch.setenv("QMSUP_STATE_DIR", str(places / "another"))
        with qmsup("scheduler", config) as second:
            assert second.ends() == Exit.UNUSABLE
        assert f"another scheduler (pid {first.process.pid}) uses {places / 'run'}" in second.log()

        with Client(timeout=Seconds(30.0)) as client:
            assert client.ask("status")["pid"] == first.process.pid
        assert first.stop(signal.SIGTERM) == Exit.OK


def test_a_signal_that_came_while_it_was_frozen_is_heard(places: Path) -> None:
    with qmsup("scheduler", configuration(places, {"m": fake()})) as scheduler:
        scheduler.says(STARTED)
        process = psutil.Process(scheduler.process.pid)
        process.suspend()
        until(lambda: process.status() == psutil.STATUS_STOPPED)
        scheduler.process.send_signal(signal.SIGHUP)
        process.resume()
        scheduler.says("scheduler.told_to_reload")
        process.suspend()
        until(lambda: process.status() == psutil.STATUS_STOPPED)
        scheduler.process.send_signal(signal.SIGTERM)
        process.resume()

        assert scheduler.ends() == Exit.OK


def test_who_waits_when_it_ends_is_told_so(places: Path) -> None:
    config = configuration(places, {"slow": fake("--load-seconds 60")})
    with qmsup("scheduler", config) as scheduler:
        scheduler.says(STARTED)
        client = ControlPeer("ctl-1-abc")
        asked = client.send("load", {"model": "slow"})
        scheduler.says('"child.starting"')

        assert scheduler.stop() == Exit.OK

        refused = client.answer_to(asked)
        client.close()
    assert refused.error is not None
    assert refused.error.code == "shutting_down"


def test_a_second_signal_waits_for_no_child(places: Path) -> None:
    config = configuration(places, {"deaf": fake("--ignore-term", unloadTimeout=600)})
    with qmsup("scheduler", config) as scheduler:
        scheduler.says(STARTED)
        with Client(timeout=Seconds(30.0)) as client:
            client.ask("load", model="deaf")
            (child,) = client.ask("running")["running"]
        scheduler.process.send_signal(signal.SIGTERM)
        scheduler.says("scheduler.told_to_end")

        assert scheduler.stop(signal.SIGINT) == Exit.OK

    assert '"again": true' in scheduler.log()
    assert not is_alive(child["pid"])


def test_a_bug_ends_the_process_with_its_own_code(places: Path) -> None:
    config = configuration(places, {"m": fake()})

    with daemon("-c", BREAKS, str(config), folder=places) as scheduler:
        assert scheduler.ends() == Exit.BROKEN

    assert '"scheduler.failed"' in scheduler.log()
    assert '"scheduler.ended", "code": 1' in scheduler.log()


def test_a_thread_that_does_not_end_does_not_keep_the_process(places: Path) -> None:
    config = configuration(places, {"m": fake()})

    with daemon("-c", STUCK + BREAKS, str(config), folder=places) as scheduler:
        assert scheduler.ends() == Exit.BROKEN

    assert '"actor.does_not_end"' in scheduler.log()


def test_what_a_restart_does_not_mend_has_another_code(places: Path) -> None:
    (places / "state").touch()
    unusable = configuration(places, {"m": fake()})
    with qmsup("scheduler", unusable) as scheduler:
        assert scheduler.ends() == Exit.UNUSABLE
    assert "set QMSUP_STATE_DIR to a folder of yours" in scheduler.log()

    wrong = configuration(places, {"m": {"cmd": ""}})
    with qmsup("scheduler", wrong) as scheduler:
        assert scheduler.ends() == Exit.UNUSABLE
    assert "models.m.cmd" in scheduler.log()


def test_of_two_ends_the_first_counts() -> None:
    ending = Ending()

    ending.end(Exit.BROKEN)
    ending.end(Exit.OK)

    assert ending.wait(told_to_end=lambda _: None, told_to_reload=lambda: None) is Exit.BROKEN
    ending.close()


def test_signals_that_interrupt_each_other_are_all_counted() -> None:
    """Told twice within the handling of the first, it knows the second for what it is."""
    code = """
import os, signal
from qmsup.daemon.exits import Exit
from qmsup.daemon.main import Ending
ending = Ending()
ending.listen_to_signals()
for _ in range(200):
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGHUP)
ending.end(Exit.OK)
told, reloads = [], []
code = ending.wait(told_to_end=told.append, told_to_reload=lambda: reloads.append(None))
assert code is Exit.OK
assert told == [False] + [True] * 399, told
assert len(reloads) == 200, reloads
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
