"""A scheduler that is killed under load is missed by nobody: streams, waiting clients and children outlive it."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.box import Box, fake, serving, until
from tests.support.streams import RawStream

pytestmark = pytest.mark.system

_STREAMS = 50
_WAITERS = 20
_FROZEN = 2.2
"""Seconds: more than one later than a time that it has set itself."""


@pytest.fixture
def box(enough: Path) -> Iterator[Box]:
    chat = f"--name chat --event-interval 0.07 --until {enough}"
    models = {
        "chat": fake(chat, concurrencyLimit=_STREAMS + 4),
        "other": fake("--name other --load-seconds 0.2", concurrencyLimit=_WAITERS),
    }
    scheduler = {"patienceMs": 600_000}
    with serving(models, vramBudgetGB=4, sendLoadingState=True, scheduler=scheduler) as box:
        yield box


def _freeze_scheduler(box: Box) -> None:
    pid = box.told("status")["pid"]
    os.kill(pid, signal.SIGSTOP)
    time.sleep(_FROZEN)
    os.kill(pid, signal.SIGCONT)


def test_streams_and_waiting_clients_outlive_it_and_no_child_is_started_again(
    box: Box, enough: Path
) -> None:
    with ExitStack() as clients:
        streams = [clients.enter_context(RawStream(box, "chat")) for _ in range(_STREAMS)]
        for stream in streams:
            stream.until_seen(b"chat3 ")
        waiters = [
            clients.enter_context(RawStream(box, "other", max_tokens=3)) for _ in range(_WAITERS)
        ]
        for waiter in waiters:
            waiter.until_seen(b": qm-status: waiting")
        child = box.model("chat")["pid"]
        before = [len(stream.numbers()) for stream in streams]

        box.kill_scheduler()

        until(lambda: len(box.decisions("lease.adopted")) == _STREAMS)  # each was told of again
        assert box.chat("chat", max_tokens=2).status_code == 200
        enough.touch()
        for stream, had in zip(streams, before, strict=True):
            stream.until_seen(b"[DONE]", within=40)
            numbers = stream.numbers()
            assert numbers == list(range(len(numbers)))
            assert len(numbers) > had
            assert b"error" not in stream.received
        for waiter in waiters:
            waiter.until_seen(b"[DONE]", within=40)
            assert b"error" not in waiter.received
    [adopted] = box.decisions("model.adopted")
    assert (adopted["model"], adopted["because"]) == ("chat", f"pid {child}")


def test_pins_and_leases_of_jobs_outlive_it_though_it_was_frozen_just_before(box: Box) -> None:
    _freeze_scheduler(box)  # it does not trust its clock for a while then
    assert box.run("lease", "chat", "--ttl", "600", "--purpose", "a long job").returncode == 0
    assert box.run("pin", "other").returncode == 0
    [lease] = box.told("leases")["leases"]

    box.kill_scheduler()

    [kept] = box.told("leases")["leases"]
    assert (kept["lease"], kept["kind"], kept["purpose"]) == (lease["lease"], "job", "a long job")
    assert kept["ttl_s"] > 500
    assert box.model("other")["pinned"]
    assert box.run("release", lease["lease"]).returncode == 0


def test_killed_again_and_again_it_keeps_its_children(box: Box) -> None:
    assert box.chat("chat", max_tokens=2).status_code == 200
    child = box.model("chat")["pid"]

    age_s = 0.0
    for _ in range(3):
        box.kill_scheduler()
        model = box.model("chat")
        assert model["pid"] == child
        assert model["age_s"] >= age_s
        age_s = model["age_s"]

    assert box.run("unload", "chat").returncode == 0
    assert box.chat("chat", max_tokens=2).status_code == 200
    assert box.model("chat")["pid"] != child
