import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from qmsup.child_logs import Follower, archive_of, last_lines
from qmsup.processes import rotation
from qmsup.processes.rotation import LogKeeper
from qmsup.units import Seconds
from tests.support.children import wait_until
from tests.support.descriptors import no_descriptor_left

LIMIT = 64 * 1024
NUMBERS = (
    "import itertools,os,sys\n"
    "for n in range(int(sys.argv[1])): os.write(1, b'line %d of many, and some more text\\n' % n)\n"
)
Keep = Callable[[Path], LogKeeper]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "LIMIT", LIMIT)
    monkeypatch.setattr(rotation, "_STEP", 16 * 1024)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "chat.log"


@pytest.fixture
def keeper_of() -> Iterator[Keep]:
    keepers: list[LogKeeper] = []

    def keep(log: Path) -> LogKeeper:
        keepers.append(LogKeeper(log, Seconds(0.0)))
        return keepers[-1]

    yield keep
    for keeper in keepers:
        keeper.close()


def append(log: Path, text: bytes) -> None:
    with log.open("ab") as file:
        file.write(text)


def tend(keeper: LogKeeper, now: float = 0.0) -> float:
    """Look, and finish what that begins; when to look next."""
    keeper.tend(Seconds(now))
    while keeper.due == now:
        keeper.tend(Seconds(now))
    assert keeper.due is not None
    return keeper.due


def content(log: Path) -> bytes:
    """All there is of a log, the archive first."""
    older = archive_of(log)
    return (older.read_bytes() if older.exists() else b"") + log.read_bytes().lstrip(b"\0")


def on_disk(log: Path) -> int:
    return log.stat().st_blocks * 512


def test_a_small_log_is_left_alone(log: Path, keeper_of: Keep) -> None:
    append(log, b"hello\n")

    assert tend(keeper_of(log)) > 0
    assert log.read_bytes() == b"hello\n"
    assert not archive_of(log).exists()


def test_a_large_one_keeps_every_byte_and_gives_its_room_back(log: Path, keeper_of: Keep) -> None:
    text = b"".join(b"line %d\n" % n for n in range(8_000)) + b"half a li"
    append(log, text)
    keeper = keeper_of(log)

    tend(keeper)

    assert content(log) == text
    latest = log.read_bytes().lstrip(b"\0")
    assert LIMIT // 4 <= len(latest) < LIMIT // 4 + 20
    assert latest.startswith(b"line ")
    assert log.stat().st_size == len(text)
    assert on_disk(log) < LIMIT
    append(log, b"ne\n")
    assert last_lines(log, 2) == [b"line 7999", b"half a line"]


def test_the_archive_has_its_bounds_too_and_begins_with_a_line(log: Path, keeper_of: Keep) -> None:
    append(log, b"old\n" * LIMIT + b"new ones\n" * (LIMIT // 3))

    tend(keeper_of(log))

    kept = archive_of(log).read_bytes().split(b"\n")
    assert set(kept) == {b"new ones", b""}
    assert log.read_bytes().endswith(b"new ones\n")
    assert 2 * LIMIT - 10 < on_disk(archive_of(log)) <= 2 * LIMIT + 4096


def test_it_is_done_again_whenever_the_log_has_grown(log: Path, keeper_of: Keep) -> None:
    keeper = keeper_of(log)
    log.touch()
    for number in range(5):
        append(log, b"%d\n" % number * (LIMIT // 2))
        tend(keeper, float(number))

    assert content(log).endswith(b"3\n" + b"4\n" * (LIMIT // 2))
    assert on_disk(log) < LIMIT


def test_a_keeper_of_a_log_with_a_hole_goes_on_from_there(log: Path, keeper_of: Keep) -> None:
    append(log, b"old\n" * LIMIT)
    tend(keeper_of(log))
    append(log, b"new\n" * (LIMIT // 8))

    tend(keeper_of(log))

    assert set(archive_of(log).read_bytes().split()) == {b"old"}


def test_the_faster_a_log_grows_the_sooner_it_is_looked_at(log: Path, keeper_of: Keep) -> None:
    log.touch()
    keeper = keeper_of(log)
    calm = tend(keeper, 1.0)
    append(log, bytes(LIMIT // 2))
    busy = tend(keeper, 2.0)

    assert calm == 5.0
    assert busy == 2.5


@contextmanager
def writer(log: Path, lines: int) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as file:
        process = subprocess.Popen([sys.executable, "-S", "-c", NUMBERS, str(lines)], stdout=file)
    yield process
    process.kill()
    process.wait()


def test_nothing_is_lost_while_a_child_writes_as_fast_as_it_can(log: Path, keeper_of: Keep) -> None:
    lines = 40_000
    keeper, follower = keeper_of(log), Follower(log)
    seen: list[bytes] = []
    log.touch()
    with writer(log, lines) as process:

        def has_ended() -> bool:
            ended = process.poll() is not None
            tend(keeper)
            seen.extend(follower.new_lines())
            return ended and not follower.has_more

        wait_until(has_ended)
    follower.close()

    kept = content(log).splitlines()
    numbers = [int(line.split()[1]) for line in kept]
    assert numbers == list(range(numbers[0], lines))  # whole lines, none missing, up to the last
    assert len(content(log)) >= LIMIT
    heard = [int(line.split()[1]) for line in seen if line.startswith(b"line")]
    assert heard == sorted(set(heard))
    assert heard[-1] == lines - 1


def test_where_there_is_no_room_for_an_archive_room_is_made(
    log: Path, keeper_of: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(_file: object, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    append(log, b"old\n" * LIMIT)
    monkeypatch.setattr(os, "write", no_room)

    tend(keeper_of(log))

    assert on_disk(log) < LIMIT
    assert not archive_of(log).exists()
    assert sorted(path.name for path in log.parent.iterdir()) == ["chat.log"]


def test_a_file_system_that_knows_no_holes_costs_the_rotation_and_no_line(
    log: Path, keeper_of: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot(_fd: int, _length: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    append(log, b"old\n" * LIMIT)
    monkeypatch.setattr(rotation, "punch_hole", cannot)
    keeper = keeper_of(log)

    while keeper.due is not None:
        keeper.tend(Seconds(0.0))

    assert log.read_bytes() == b"old\n" * LIMIT


def test_what_is_no_file_cannot_be_punched() -> None:
    reader, writer_end = os.pipe()
    with pytest.raises(OSError, match="seek"):
        rotation.punch_hole(writer_end, 1)
    os.close(reader)
    os.close(writer_end)


def test_a_log_that_does_not_grow_is_looked_at_when_one_is_awake_anyway(
    log: Path, keeper_of: Keep
) -> None:
    append(log, b"hello\n")
    keeper = keeper_of(log)
    due = [tend(keeper, at) for at in (1.0, 5.0, 9.0, 17.0)]

    assert due == [5.0, 9.0, 17.0, 29.0]
    middle = (17.0 + 29.0) / 2
    assert [keeper.is_to_be_tended(Seconds(at)) for at in (middle - 0.1, middle)] == [False, True]


def test_a_log_that_is_gone_is_nobodys_trouble(log: Path, keeper_of: Keep) -> None:
    keeper = keeper_of(log)

    keeper.tend(Seconds(0.0))

    assert keeper.due is None


def test_an_archive_that_cannot_be_written_is_a_rotation_given_up(
    log: Path, keeper_of: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(log, b"old\n" * LIMIT)
    archive_of(log).with_suffix(".new").mkdir()
    keeper = keeper_of(log)

    while keeper.due is not None:
        keeper.tend(Seconds(0.0))

    assert log.read_bytes() == b"old\n" * LIMIT


def test_a_log_that_was_removed_is_kept_from_filling_the_disk(log: Path, keeper_of: Keep) -> None:
    append(log, b"hello\n")
    keeper = keeper_of(log)
    tend(keeper, 1.0)

    with log.open("ab") as child:
        log.unlink()
        child.write(b"unseen\n" * LIMIT)
        child.flush()
        tend(keeper, 2.0)

        assert os.fstat(child.fileno()).st_blocks * 512 < LIMIT
        assert list(log.parent.iterdir()) == []


def test_a_log_that_another_was_put_in_place_of_leaves_that_alone(
    log: Path, keeper_of: Keep
) -> None:
    append(log, b"hello\n")
    keeper = keeper_of(log)
    tend(keeper, 1.0)

    with log.open("ab") as child:
        log.replace(log.with_name("moved"))
        append(log, b"another\n" * LIMIT)
        child.write(b"mine\n" * LIMIT)
        child.flush()
        tend(keeper, 2.0)

    assert log.read_bytes() == b"another\n" * LIMIT
    assert on_disk(log.with_name("moved")) < LIMIT


def test_a_log_that_was_emptied_is_looked_after_from_its_new_start(
    log: Path, keeper_of: Keep
) -> None:
    append(log, b"old\n" * LIMIT)
    keeper = keeper_of(log)
    tend(keeper, 1.0)

    os.truncate(log, 0)
    append(log, b"new\n" * (LIMIT // 2))
    tend(keeper, 2.0)

    assert content(log).endswith(b"new\n" * (LIMIT // 2))
    assert on_disk(log) < LIMIT


def test_a_log_that_is_emptied_while_it_is_moved_is_left_at_that(
    log: Path, keeper_of: Keep
) -> None:
    append(log, b"old\n" * LIMIT)
    keeper = keeper_of(log)
    keeper.tend(Seconds(0.0))
    keeper.tend(Seconds(0.0))

    os.truncate(log, 0)

    assert tend(keeper) > 0
    assert sorted(path.name for path in log.parent.iterdir()) == ["chat.log"]


def test_without_a_descriptor_it_is_tried_again(log: Path, keeper_of: Keep) -> None:
    append(log, b"old\n" * LIMIT)
    keeper = keeper_of(log)

    with no_descriptor_left():
        assert tend(keeper) > 0
    tend(keeper, 5.0)

    assert on_disk(log) < LIMIT


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_nobodys_trouble(
    log: Path, keeper_of: Keep, make: Callable[[Path], None]
) -> None:
    make(log)
    keeper = keeper_of(log)

    keeper.tend(Seconds(0.0))

    assert keeper.due is None
