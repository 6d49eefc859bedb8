import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from scripts.soaking.claims import Claims
from tests.support.box import FAKE_CHILD, until
from tests.support.servers import free_port

# What stands for a scheduler: it starts as many servers as it is told to.
_SCHEDULER = f"""
import subprocess, sys, time
for port in sys.argv[2:]:
    subprocess.Popen([sys.executable, {str(FAKE_CHILD)!r}, "--port", port], start_new_session=True)
time.sleep(60)
"""


@contextmanager
def scheduler(servers: int) -> Iterator[subprocess.Popen[bytes]]:
    ports = [str(free_port()) for _ in range(servers)]
    command = [sys.executable, "-c", _SCHEDULER, "scheduler", *ports]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        yield process
        children = f"/proc/{process.pid}/task/{process.pid}/children"
        with open(children) as file:  # noqa: PTH123 - of the kernel
            for pid in file.read().split():
                os.kill(int(pid), signal.SIGKILL)
        process.kill()


@pytest.mark.parametrize(("servers", "fits"), [(2, True), (3, False)])
def test_servers_that_live_side_by_side_are_counted(servers: int, fits: bool) -> None:
    claims = Claims(os.getpid(), 2)
    try:
        with scheduler(servers):
            until(lambda: claims.most_seen == servers)
    finally:
        claims.close()

    assert (claims.excess == "") is fits
    # One may not have become the server yet, and is called as its parent then.
    assert claims.excess.count(" , ") == (0 if fits else 2)


def test_those_of_a_dead_scheduler_count_and_the_dead_do_not() -> None:
    claims = Claims(os.getpid(), 1)
    with ExitStack() as stack:
        stack.callback(claims.close)
        for _ in range(2):
            command = [sys.executable, str(FAKE_CHILD), "--port", str(free_port())]
            server = subprocess.Popen(command, stderr=subprocess.DEVNULL)  # its parent is gone
            until(lambda: claims.most_seen == 1)
            server.kill()
            os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)
            stack.callback(server.wait)

    assert claims.most_seen == 1
    assert claims.excess == ""
