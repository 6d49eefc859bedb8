import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import requests

from scripts.soaking.thief import Thief, started_by
from tests.support.box import FAKE_CHILD, until
from tests.support.rendering import FAKE_SD_SERVER
from tests.support.servers import free_port


@contextmanager
def started(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, *command], stderr=subprocess.DEVNULL) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("shares", [False, True])
def test_the_port_of_a_child_is_had_before_the_child_has_it(shares: bool) -> None:
    port = free_port()
    thief = Thief(os.getpid, shares=shares)
    try:
        with started(str(FAKE_CHILD), "--port", str(port)) as child:
            assert child.wait(20) == 1  # it could not bind
        assert thief.stolen == port
        answer = requests.get(f"http://127.0.0.1:{port}/health", timeout=5)
        assert answer.status_code == 200
    finally:
        thief.give_back()

    assert [heard[:4] for heard in thief.heard] == [b"GET "]
    with pytest.raises(requests.ConnectionError):
        requests.get(f"http://127.0.0.1:{port}/health", timeout=5)


def test_who_is_there_already_is_left_alone_and_so_is_who_has_no_port() -> None:
    port = free_port()
    with started(str(FAKE_SD_SERVER), "--listen-port", str(port)) as child:
        until(lambda: (child.pid, port) in started_by(os.getpid()))
        thief = Thief(os.getpid, shares=True)
        with started("-c", "import time; time.sleep(60)") as other:
            until(lambda: (other.pid, None) in started_by(os.getpid()))
        thief.give_back()

    assert thief.stolen is None


def test_without_a_scheduler_there_is_nobody_to_rob() -> None:
    thief = Thief(lambda: None, shares=False)
    thief.give_back()

    assert (thief.stolen, thief.heard) == (None, [])
    assert list(started_by(2**22 + 1)) == []
