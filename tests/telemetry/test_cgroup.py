from pathlib import Path

import pytest

from qmsup.telemetry.cgroup import Limit, limits
from tests.support.machine import write

GROUPS = "sys/fs/cgroup"


def group(root: Path, path: str, **files: str | int) -> None:
    for name, content in files.items():
        write(root / GROUPS / path / f"memory.{name}", content)


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Version 2; we are in /system.slice/qmsup.service."""
    write(tmp_path / "proc/self/cgroup", "0::/system.slice/qmsup.service")
    return tmp_path


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """Version 1, beside a version 2 that has no memory; we are in /docker/abc."""
    text = "12:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n1:name=systemd:/x\n0::/x"
    write(tmp_path / "proc/self/cgroup", text)
    return tmp_path


def test_without_limits_there_are_none(two: Path) -> None:
    group(two, "system.slice/qmsup.service", max="max", high="max", current=5)

    assert limits(two) == []
    assert limits(two / "nowhere") == []


def test_a_limit_leaves_what_is_not_in_use_and_what_caches_hold(two: Path) -> None:
    stat = "anon 500\nfile 400\nshmem 100\nactive_file 200\ninactive_file 100\nslab_reclaimable 30"
    group(two, "system.slice/qmsup.service", max=1000, high="max", current=900, stat=stat)

    assert limits(two) == [Limit(most=1000, available=430)]


def test_where_a_group_is_slowed_down_is_a_limit_too(two: Path) -> None:
    group(two, "system.slice/qmsup.service", max=1000, high=700, current=100)

    assert limits(two) == [Limit(most=700, available=600)]


def test_each_group_on_the_way_up_limits(two: Path) -> None:
    group(two, "system.slice/qmsup.service", max=1000, current=100)
    group(two, "system.slice", max=800, current=750)
    group(two, "", max="max")
    group(two, "other.slice", max=1, current=1)

    assert limits(two) == [Limit(most=1000, available=900), Limit(most=800, available=50)]


def test_more_in_use_than_allowed_leaves_nothing(two: Path) -> None:
    group(two, "system.slice/qmsup.service", max=1000, current=1200)

    assert limits(two) == [Limit(most=1000, available=0)]


def test_version_one_has_other_words_for_it(one: Path) -> None:
    group(
        one,
        "memory/docker/abc",
        limit_in_bytes=1000,
        usage_in_bytes=900,
        stat="cache 9\ntotal_active_file 100\ntotal_inactive_file 50",
    )
    group(one, "memory", limit_in_bytes=9223372036854771712, usage_in_bytes=900)

    assert limits(one) == [Limit(most=1000, available=250)]


def test_in_a_container_the_mount_is_ours_though_the_path_is_the_hosts(one: Path) -> None:
    group(one, "memory", limit_in_bytes=1000, usage_in_bytes=900)

    assert limits(one) == [Limit(most=1000, available=100)]


def test_a_limit_of_which_the_use_is_not_told_is_not_one(two: Path) -> None:
    group(two, "system.slice/qmsup.service", max=1000)

    assert limits(two) == []


@pytest.mark.parametrize("line", ["", "weird", "a b c", "inactive_file much", "inactive_file -5"])
def test_lines_that_say_nothing_cost_the_others_nothing(two: Path, line: str) -> None:
    stat = f"anon 500\n{line}\nactive_file 200"
    group(two, "system.slice/qmsup.service", max=1000, current=900, stat=stat)

    assert limits(two) == [Limit(most=1000, available=300)]


@pytest.mark.parametrize("path", ["..", "/../other", "else where/a:b", "", "/gone (deleted)"])
def test_of_a_group_that_is_not_seen_from_here_the_mount_is_what_is_left(
    tmp_path: Path, path: str
) -> None:
    write(tmp_path / "proc/self/cgroup", f"0::{path}")
    group(tmp_path, "", max=1000, current=900)

    assert limits(tmp_path) == [Limit(most=1000, available=100)]


def test_version_two_beside_one_has_a_mount_of_its_own(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "4:cpu:/x\n0::/x")
    group(tmp_path, "unified/x", max=1000, current=900)

    assert limits(tmp_path) == [Limit(most=1000, available=100)]
