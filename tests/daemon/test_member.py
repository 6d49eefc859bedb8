import os
import select
import signal
import subprocess
import sys
import time

import pytest

from qmsup.daemon.member import Member
from qmsup.units import Seconds


class _Program(Member):
    """A member that runs a command of the test instead of a verb of qmsup."""

    def __init__(self, *argv: str) -> None:
        super().__init__("program", [])
        self._argv = list(argv)


def _reap_within(member: Member, seconds: float) -> int | None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if (code := member.reap(Seconds(1.0))) is not None:
            return code
        time.sleep(0.005)
    return None


def test_it_is_started_once_its_time_has_come() -> None:
    member = _Program("sleep", "60")
    member.start_at = Seconds(5.0)

    member.start_if_due(Seconds(4.9))
    early = member.pid
    member.start_if_due(Seconds(5.0))

    assert early is None
    assert member.pid is not None
    member.kill_group()


def test_a_death_plans_the_next_start_and_later_ones_pause_longer() -> None:
    member = _Program("false")
    pauses = []
    for _ in range(7):
        member.start_at = Seconds(0.0)
        member.start_if_due(Seconds(0.0))
        assert _reap_within(member, 10) == 1
        assert member.start_at is not None
        pauses.append(round(member.start_at - 1.0, 3))

    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


def test_a_steady_member_that_dies_is_started_again_soon() -> None:
    member = _Program("false")
    for started in (0.0, 0.0, -20.0):
        member.start_at = Seconds(started)
        member.start_if_due(Seconds(started))
        _reap_within(member, 10)

    assert member.start_at == pytest.approx(1.2)


def test_a_signalled_member_is_not_started_again() -> None:
    member = _Program("sleep", "60")
    member.start_if_due(Seconds(0.0))

    member.signal(signal.SIGTERM)
    assert _has_ended_within(member, 10)
    member.start_if_due(Seconds(100.0))
    assert member.has_ended()


def _has_ended_within(member: Member, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not member.has_ended():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def test_killing_takes_what_it_forked_along() -> None:
    member = _Program("sh", "-c", "sleep 61 & echo $! >&2; wait")
    member.start_if_due(Seconds(0.0))
    assert member.pid is not None
    deadline = time.monotonic() + 10
    group = member.pid
    while _members_of(group) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)

    member.kill_group()

    while _members_of(group) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert _members_of(group) == 0


def _members_of(group: int) -> int:
    listed = subprocess.run(
        ["ps", "-e", "-o", "pgid=,stat="], capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in listed.stdout.splitlines()]
    return sum(1 for pgid, stat in rows if int(pgid) == group and not stat.startswith("Z"))


def test_it_ends_when_its_parent_is_killed() -> None:
    code = """
import time
from qmsup.daemon.member import Member
from qmsup.units import Seconds
m = Member("program", [])
m._argv = ["sleep", "62"]
m.start_if_due(Seconds(0.0))
print(m.pid, flush=True)
time.sleep(60)
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pidfd = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    assert poll.poll(10_000)
    os.close(pidfd)


def test_a_signal_passed_on_does_not_end_a_member_that_does_not_listen_to_it_yet() -> None:
    member = _Program(sys.executable, "-c", "import time; time.sleep(60)")
    member.pass_on(signal.SIGHUP)  # nobody is there
    member.start_if_due(Seconds(0.0))

    member.pass_on(signal.SIGHUP)
    member.pass_on(signal.SIGSTOP)
    pid = member.pid
    assert pid is not None
    _, status = os.waitpid(pid, os.WUNTRACED)

    assert os.WIFSTOPPED(status)
    member.kill_group()
