from pathlib import Path

import pytest

from qmsup.telemetry.fdinfo import clients, parse
from tests.support.machine import FakeMachine, client


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path)


def test_a_client_is_told_with_its_memory_in_bytes_whatever_the_unit(machine: FakeMachine) -> None:
    machine.opens(
        7, 3, *client(42, "drm-memory-vram:\t2 MiB", "drm-memory-gtt: 3 KiB", "drm-memory-x: 5")
    )

    (found,) = clients(machine.proc, [7])

    assert (found.pid, found.driver, found.device) == (7, "amdgpu", "0000:03:00.0")
    assert found.memory == {"vram": 2 * 1024**2, "gtt": 3 * 1024, "x": 5}


def test_what_is_there_counts_before_what_was_asked_for(machine: FakeMachine) -> None:
    lines = ("drm-total-vram: 9 KiB", "drm-memory-vram: 5 KiB", "drm-resident-vram: 4 KiB")
    machine.opens(7, 3, *client(1, *lines, "drm-total-gtt: 8 KiB"))

    assert clients(machine.proc, [7])[0].memory == {"vram": 4096, "gtt": 8192}


def test_a_duplicated_descriptor_is_one_client(machine: FakeMachine) -> None:
    for fd in (3, 4, 5):
        machine.opens(7, fd, *client(42, "drm-memory-vram: 1 MiB"))
    machine.opens(7, 6, *client(43, "drm-memory-vram: 2 MiB"))

    assert sorted(found.number for found in clients(machine.proc, [7])) == ["42", "43"]


def test_an_inherited_one_is_counted_for_the_lowest_pid(machine: FakeMachine) -> None:
    for pid in (9, 7, 8):
        machine.opens(pid, 3, *client(42, "drm-memory-vram: 1 MiB"))

    assert [found.pid for found in clients(machine.proc, [9, 8, 7])] == [7]


def test_the_same_number_on_two_cards_is_two_clients(machine: FakeMachine) -> None:
    machine.opens(7, 3, *client(1))
    machine.opens(7, 4, *client(1, at="0000:04:00.0"))

    assert len(clients(machine.proc, [7])) == 2


def test_sockets_and_files_are_not_read(machine: FakeMachine) -> None:
    machine.opens(7, 3, *client(1), target="socket:[123]")
    machine.opens(7, 4, *client(2), target="/dev/dri/card0")
    machine.opens(7, 5, *client(3), target="/dev/nvidia0")

    assert [found.number for found in clients(machine.proc, [7])] == ["2"]


def test_only_the_processes_named_are_walked_or_all(machine: FakeMachine) -> None:
    machine.opens(7, 3, *client(1))
    machine.opens(8, 3, *client(2))
    (machine.proc / "sys").mkdir()

    assert [found.pid for found in clients(machine.proc, [8])] == [8]
    assert [found.pid for found in clients(machine.proc, None)] == [7, 8]


def test_processes_that_are_gone_and_pages_that_are_gone_are_left_out(machine: FakeMachine) -> None:
    machine.opens(7, 3, *client(1))
    machine.opens(7, 4, *client(2))
    (machine.proc / "7/fdinfo/4").unlink()

    assert [found.number for found in clients(machine.proc, [6, 7])] == ["1"]
    assert clients(machine.root / "nowhere", None) == []


def test_a_process_that_time_cuts_off_is_left_out_whole(machine: FakeMachine) -> None:
    for pid in (7, 8):
        machine.opens(pid, 3, *client(pid, "drm-memory-vram: 1 MiB"))
        machine.opens(pid, 4, *client(pid + 10, "drm-memory-vram: 1 MiB"))
    answers = iter([False, False, False, True])

    found = clients(machine.proc, [7, 8], is_late=lambda: next(answers))

    assert [one.pid for one in found] == [7, 7]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pos: 0\nflags: 02",
        "drm-driver: amdgpu\ndrm-pdev: 0000:03:00.0",
        "drm-client-id: 3",
        "\x00:\n:",
    ],
)
def test_a_page_that_does_not_name_client_and_device_is_none(text: str) -> None:
    assert parse(7, text) is None


def test_sizes_that_are_none_are_left_out() -> None:
    found = parse(7, "\n".join(client(1, "drm-memory-vram: lots", "drm-total-gtt: 3 parsec")))

    assert found is not None
    assert found.memory == {}
