"""Another release put in place while requests keep arriving: a fresh scheduler, fresh workers, and nobody notices."""

import os
import signal

import pytest

from tests.support.arrivals import Arrivals
from tests.support.box import Box, fake, serving, until

pytestmark = pytest.mark.system


def _restart_scheduler(box: Box) -> None:
    before = box.told("status")
    os.kill(before["pid"], signal.SIGTERM)
    box.until_next_scheduler(before)


def _renew_workers(box: Box, listener: str) -> None:
    former = {worker.pid for worker in box.listener(listener).children()}
    box.listener(listener).send_signal(signal.SIGHUP)

    def look() -> bool:
        there = {worker.pid for worker in box.listener(listener).children()}
        return bool(there) and not there & former

    until(look, within=40.0, what=f"fresh workers of {listener}")


@pytest.mark.timeout(180)
def test_requests_that_arrive_during_an_upgrade_are_all_served() -> None:
    models = {"chat": fake("--name chat --event-interval 0.02", concurrencyLimit=4)}
    listeners = {"main": {"workers": 2}, "side": {"workers": 1}}
    with serving(models, listeners=listeners, onExit="keep") as box:
        with Arrivals(box, "chat", tuple(listeners)) as arrivals:
            arrivals.more()
            child = box.model("chat")["pid"]

            _restart_scheduler(box)
            arrivals.more()
            for port in listeners:
                _renew_workers(box, port)
            arrivals.more()

        assert arrivals.failed == []
        assert box.model("chat")["pid"] == child
        assert box.run("unload", "chat").returncode == 0  # it would be kept
