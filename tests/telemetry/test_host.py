from pathlib import Path

import psutil

from qmsup.telemetry import host
from qmsup.units import MiB, mib_from_bytes
from tests.support.machine import MIB, write


def test_without_limits_it_is_the_machines(tmp_path: Path) -> None:
    ram = host.read(tmp_path)

    assert ram.total == mib_from_bytes(psutil.virtual_memory().total)
    assert 0 < ram.available <= ram.total


def test_the_tightest_limit_counts(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "0::/a")
    write(tmp_path / "sys/fs/cgroup/a/memory.max", 64 * MIB)
    write(tmp_path / "sys/fs/cgroup/a/memory.current", 60 * MIB)

    ram = host.read(tmp_path)

    assert (ram.total, ram.available) == (MiB(64), MiB(4))


def test_a_limit_above_what_there_is_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "0::/a")
    write(tmp_path / "sys/fs/cgroup/a/memory.max", 2**50)
    write(tmp_path / "sys/fs/cgroup/a/memory.current", 0)

    assert host.read(tmp_path).total == host.read(tmp_path / "nowhere").total
