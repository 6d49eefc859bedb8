import math
import os
import subprocess
import sys
import time

from scripts.benchmark import accounting


def test_cpu_time_of_a_process_is_what_it_used_itself() -> None:
    before = accounting.cpu_seconds([os.getpid()])
    used = time.process_time()
    while time.process_time() < used + 0.05:
        pass

    assert 0.05 <= accounting.cpu_seconds([os.getpid()]) - before < 5


def test_a_process_that_is_gone_counts_nothing() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()

    assert accounting.cpu_seconds([process.pid]) == 0
    assert accounting.resident_kib(process.pid) == 0
    assert accounting.threads(process.pid) == 0
    assert accounting.command(process.pid) == ""
    assert accounting.descendants(process.pid) == []


def test_descendants_are_found_over_generations() -> None:
    # `:` keeps the shell from turning itself into its last command.
    process = subprocess.Popen(
        ["/bin/sh", "-c", "sleep 60; :"], stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        deadline = time.monotonic() + 10
        while not (below := accounting.descendants(process.pid)):
            assert time.monotonic() < deadline

        assert process.pid in accounting.descendants(os.getpid())
        assert below[0] in accounting.descendants(os.getpid())
        assert accounting.threads(process.pid) == 1
        assert accounting.resident_kib(process.pid) > 0
        assert "sleep 60" in accounting.command(process.pid)
    finally:
        os.killpg(process.pid, 9)
        process.wait()


def test_when_a_process_started_is_told_by_the_clock_that_counts_from_boot() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        started = accounting.started_at(process.pid)
        after = time.clock_gettime(time.CLOCK_BOOTTIME)
        process.communicate(b"")

    assert before - 0.02 <= started <= after
    assert math.isnan(accounting.started_at(process.pid))
