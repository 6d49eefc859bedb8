"""Each part is killed or frozen in turn; what is left behind is nothing, and the others go on."""

import os
import signal
from collections.abc import Iterator

import psutil
import pytest
import requests

from tests.support.box import Box, fake, real, serving, until
from tests.support.streams import RawStream

pytestmark = pytest.mark.system


@pytest.fixture
def box() -> Iterator[Box]:
    models = {
        "slow": fake("--name slow --event-interval 0.02"),
        "lazy": fake("--name lazy --load-seconds 2"),
        "deaf": fake("--name deaf --ignore-term --event-interval 0.02", unloadTimeout=1),
        "mortal": fake("--name mortal --die-after-requests 1"),
        "parent": fake("--name parent --grandchild"),
        "real": real("alpha", args="-c 1024 -np 1 --context-shift"),  # streams for ever
    }
    with serving(models, vramBudgetGB=4, sendLoadingState=True) as box:
        yield box


def _kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    os.kill(pid, number)


def test_a_child_killed_in_mid_stream_leaves_a_visible_cut_and_is_started_again(box: Box) -> None:
    with RawStream(box, "slow") as stream:
        stream.until_seen(b"slow1 ")
        _kill(box.model("slow")["pid"])
        seen = stream.until_end()

    assert b'"upstream_failed"' in seen
    assert b"was killed by SIGKILL" in seen
    assert b"[DONE]" not in seen
    assert not seen.endswith(b"0\r\n\r\n")
    until(lambda: box.model("slow")["inflight"] == 0)
    assert box.chat("slow").status_code == 200


def test_a_child_that_dies_before_it_answers_is_a_502_that_names_it(box: Box) -> None:
    answer = box.chat("mortal")

    assert answer.status_code == 502
    assert answer.json()["error"]["code"] == "upstream_failed"
    message = answer.json()["error"]["message"]
    assert "mortal" in message
    assert "was killed by SIGKILL" in message
    assert "listening on" in message  # its last lines


def test_a_child_killed_while_loading_fails_its_waiters_with_the_reason(box: Box) -> None:
    with RawStream(box, "lazy", stream=False) as waiting:
        pid = until(lambda: box.model("lazy")["pid"])
        _kill(pid)
        seen = waiting.until_seen(b"model_load_failed")

    assert seen.startswith(b"HTTP/1.1 502")
    assert b"SIGKILL" in seen
    assert box.model("lazy")["queued"] == 0


def test_a_real_child_under_a_stream_stops_when_told(box: Box) -> None:
    with RawStream(box, "real", max_tokens=10**9) as stream:
        stream.until_seen(b"alpha")
        pid = box.model("real")["pid"]
        assert box.run("unload", "real").returncode == 0
        stream.until_end()

    assert not psutil.pid_exists(pid)


def test_a_child_deaf_to_term_is_killed_after_its_grace(box: Box) -> None:
    assert box.chat("deaf").status_code == 200
    pid = box.model("deaf")["pid"]

    assert box.run("unload", "deaf").returncode == 0

    assert not psutil.pid_exists(pid)


def test_grandchildren_go_with_their_parent(box: Box) -> None:
    assert box.chat("parent").status_code == 200
    family = psutil.Process(box.model("parent")["pid"]).children()
    assert family

    assert box.run("unload", "parent").returncode == 0

    until(lambda: not any(p.is_running() for p in family))


def test_a_killed_worker_frees_what_it_held_and_is_replaced(box: Box) -> None:
    with RawStream(box, "slow") as stream:
        stream.until_seen(b"slow1 ")
        (worker,) = box.told("status")["listeners"]
        _kill(worker["pid"])
        until(lambda: box.model("slow")["inflight"] == 0)
        stream.until_end()

    until(lambda: [w for w in box.told("status")["listeners"] if w["pid"] != worker["pid"]])
    until(lambda: _answers(box))


def test_a_frozen_worker_comes_back(box: Box) -> None:
    assert box.chat("slow").status_code == 200
    (worker,) = box.told("status")["listeners"]
    _kill(worker["pid"], signal.SIGSTOP)
    until(lambda: '"worker.silent"' in box.log())
    _kill(worker["pid"], signal.SIGCONT)

    until(lambda: _answers(box))
    assert [w["pid"] for w in box.told("status")["listeners"]] == [worker["pid"]]


def test_a_killed_scheduler_is_replaced_and_goes_on_with_its_children(box: Box) -> None:
    assert box.chat("slow").status_code == 200
    child = box.model("slow")["pid"]

    box.kill_scheduler()

    assert box.model("slow")["pid"] == child
    until(lambda: _answers(box))


def test_waiting_clients_outlive_the_scheduler(box: Box) -> None:
    with RawStream(box, "lazy", max_tokens=3) as waiting:
        waiting.until_seen(b": qm-status: loading")
        _kill(box.told("status")["pid"])

        waiting.until_seen(b"[DONE]", within=30)


def _answers(box: Box) -> bool:
    try:
        return box.chat("slow").status_code == 200
    except requests.ConnectionError:
        return False


def test_a_frozen_child_delays_nobody_else(box: Box) -> None:
    with RawStream(box, "slow") as stream:
        stream.until_seen(b"slow1 ")
        pid = box.model("slow")["pid"]
        _kill(pid, signal.SIGSTOP)
        assert requests.get(box.url("/v1/models"), timeout=10).status_code == 200
        assert box.run("unload", "slow").returncode == 0

    assert not psutil.pid_exists(pid)


def test_a_second_interrupt_ends_it_at_once() -> None:
    with serving({"deaf": fake("--ignore-term")}, unloadTimeout=600) as box:
        assert box.chat("deaf").status_code == 200
        box.process.send_signal(signal.SIGINT)
        until(lambda: "scheduler.told_to_end" in box.log())

        assert box.stop() == 0
        until(lambda: not box.processes())


def test_nothing_outlives_a_killed_serve() -> None:
    with serving({"slow": fake("--event-interval 0.02")}) as box:
        assert box.chat("slow").status_code == 200
        with RawStream(box, "slow") as stream:
            stream.until_seen(b"fake1 ")
            box.process.kill()
            box.process.wait(10)
            until(lambda: not box.processes(), within=30)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_leaves_cleanly_under_load(number: signal.Signals) -> None:
    with serving({"slow": fake("--event-interval 0.02")}, shutdownDrainMs=200) as box:
        with RawStream(box, "slow") as stream, RawStream(box, "slow", stream=False):
            stream.until_seen(b"fake1 ")

            assert box.stop(number) == 0
            seen = stream.until_end()
        assert b"shutting_down" in seen or b"upstream_failed" in seen
        until(lambda: not box.processes())
