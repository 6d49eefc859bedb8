import os

import psutil
import pytest

from scripts.soaking.census import Ledger, Member, Size, grows, size_of


def sizes(*, fds: str = "", threads: str = "", memory: str = "") -> list[Size]:
    rows = [[int(word) for word in words.split()] for words in (fds, threads, memory)]
    count = max(map(len, rows))
    columns = [row or [100_000] * count for row in rows]
    return [Size(fds=f, threads=t, memory_kib=m) for f, t, m in zip(*columns, strict=True)]


GROWTH = {
    "what stays": (sizes(fds="9 9 9 9 9 9 9 9 9"), []),
    "what swings": (sizes(fds="9 30 9 9 30 9 9 30 9"), []),
    "what shrinks": (sizes(memory="90000 90000 50000 50000 20000 20000"), []),
    "descriptors": (sizes(fds="10 11 12 13 14 15 16 17 18"), ["descriptors 12 -> 16"]),
    "threads": (sizes(threads="3 3 3 4 4 4"), ["threads 3 -> 4"]),
    "memory": (sizes(memory="40000 40000 50000 60000 60000 60000"), ["memory 40000 -> 60000 KiB"]),
}


@pytest.mark.parametrize("what", GROWTH)
def test_growth_is_told_from_swinging(what: str) -> None:
    series, told = GROWTH[what]

    assert grows(series) == told


def test_what_an_onlooker_and_the_pool_take_of_a_worker_is_no_growth_and_more_is() -> None:
    before, looked_on = Size(fds=19, threads=4, memory_kib=9), Size(fds=29, threads=6, memory_kib=9)
    more = Size(fds=33, threads=8, memory_kib=9)

    assert grows([before] * 3 + [looked_on] * 3, is_worker=True) == []
    assert len(grows([before] * 3 + [looked_on] * 3)) == 2
    assert len(grows([before] * 3 + [more] * 3, is_worker=True)) == 2


def test_only_who_lived_long_enough_is_judged() -> None:
    ledger = Ledger()
    for number in range(8):
        ledger.enter(member(1), Size(fds=10 * number, threads=1, memory_kib=1))
    assert not ledger.growth()
    for number in range(8, 12):
        ledger.enter(member(1), Size(fds=10 * number, threads=1, memory_kib=1))

    assert ledger.growth() == ["worker main (pid 1): descriptors 40 -> 90"]


def test_of_each_kind_the_one_that_lived_longest_is_shown() -> None:
    ledger = Ledger()
    for pid, count in ((1, 3), (2, 5), (3, 1)):
        for number in range(count):
            ledger.enter(member(pid), Size(fds=number, threads=1, memory_kib=pid))

    (line,) = ledger.longest()
    assert line.startswith("worker main: 5 readings, fds 2 -> 4, threads 1 -> 1, memory 2 -> 2")


def test_a_size_is_that_of_the_process() -> None:
    ours = size_of(psutil.Process())

    before = ours.fds
    descriptor = os.dup(0)
    after = size_of(psutil.Process()).fds
    os.close(descriptor)

    assert after == before + 1


def member(pid: int) -> Member:
    return Member(name="worker main", pid=pid, born=1.0)
