from collections.abc import Collection
from pathlib import Path

import pytest

from qmsup.core.vram.sample import Card, Sample, Use
from qmsup.telemetry import amd, drm, fdinfo
from qmsup.units import MiB
from tests.support.machine import FakeMachine, client

RX = "PCI-0000:03:00.0"


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path)


def read(machine: FakeMachine, pids: Collection[int] | None = None) -> Sample:
    clients = fdinfo.clients(machine.proc, pids)
    return amd.read(machine.sysfs, drm.devices(machine.sysfs), clients, pids)


def test_a_card_of_its_own_has_its_vram_alone(machine: FakeMachine) -> None:
    machine.amd_card(vram=(24576, 1000), gtt=(32000, 500))

    assert read(machine).cards == (
        Card(
            uuid=RX,
            name="AMD GPU 1002:744C",
            total=MiB(24576),
            used=MiB(1000),
            has_processes=True,
        ),
    )


def test_an_integrated_one_has_its_part_of_the_machines_memory_too(machine: FakeMachine) -> None:
    machine.amd_card(vram=(512, 100), gtt=(32000, 500), is_integrated=True)
    lines = ("drm-memory-vram: 60 MiB", "drm-memory-gtt: 200 MiB", "drm-memory-cpu: 9 MiB")
    machine.opens(7, 3, *client(1, *lines))

    sample = read(machine)

    assert (sample.cards[0].total, sample.cards[0].used) == (32512, 600)
    assert sample.cards[0].is_integrated
    assert sample.uses == (Use(pid=7, card=RX, used=MiB(260)),)


def test_the_makers_number_and_name_are_used_where_they_are_told(machine: FakeMachine) -> None:
    machine.amd_card(unique_id="6b1b6cf1e4c4e0e5", product_name="Radeon PRO W7900")

    (card,) = read(machine).cards

    assert (card.uuid, card.name) == ("AMD-6b1b6cf1e4c4e0e5", "Radeon PRO W7900")


def test_a_process_holds_what_its_clients_do(machine: FakeMachine) -> None:
    machine.amd_card()
    machine.opens(7, 3, *client(1, "drm-memory-vram: 100 MiB", "drm-memory-gtt: 50 MiB"))
    machine.opens(7, 4, *client(2, "drm-memory-vram: 200 MiB"))
    machine.opens(8, 3, *client(3, "drm-memory-vram: 5 MiB"))

    assert read(machine).uses == (
        Use(pid=7, card=RX, used=MiB(300)),
        Use(pid=8, card=RX, used=MiB(5)),
    )


def test_an_old_kernel_shows_processes_and_not_what_they_hold(machine: FakeMachine) -> None:
    machine.amd_card()
    machine.opens(7, 3, *client(1))

    sample = read(machine)

    assert sample.uses == (Use(pid=7, card=RX, used=None),)
    assert not sample.cards[0].has_processes


def test_each_of_two_cards_has_its_own_clients(machine: FakeMachine) -> None:
    machine.amd_card(0, "0000:03:00.0")
    machine.amd_card(1, "0000:83:00.0", vram=(8192, 0))
    machine.opens(7, 3, *client(1, "drm-memory-vram: 100 MiB"))
    machine.opens(7, 4, *client(1, "drm-memory-vram: 200 MiB", at="0000:83:00.0"))

    sample = read(machine)

    assert [card.total for card in sample.cards] == [24576, 8192]
    assert {(use.card, use.used) for use in sample.uses} == {(RX, 100), ("PCI-0000:83:00.0", 200)}


def test_what_rocm_took_is_counted_once(machine: FakeMachine) -> None:
    machine.amd_card()
    machine.compute_node(0, 0, 0)
    machine.compute_node(1, 51000, 0x0300)
    machine.opens(7, 3, *client(1, "drm-memory-vram: 100 MiB"))
    machine.computes(7, 51000, 90)
    machine.opens(8, 3, *client(2))
    machine.computes(8, 51000, 300)
    machine.computes(9, 51000, 40)

    assert {use.pid: use.used for use in read(machine).uses} == {7: 100, 8: 300, 9: 40}
    assert {use.pid: use.used for use in read(machine, [7, 9]).uses} == {7: 100, 9: 40}


@pytest.mark.parametrize("name", ["mem_info_vram_total", "uevent"])
def test_a_card_that_does_not_tell_its_size_or_place_is_left_out(
    machine: FakeMachine, name: str
) -> None:
    (machine.amd_card() / name).unlink()
    machine.opens(7, 3, *client(1, "drm-memory-vram: 100 MiB"))

    assert read(machine) == Sample()


def test_use_that_is_not_told_is_none(machine: FakeMachine) -> None:
    (machine.amd_card() / "mem_info_vram_used").unlink()

    assert [card.used for card in read(machine).cards] == [None]


def test_where_there_is_no_such_card_there_is_nothing(machine: FakeMachine) -> None:
    assert read(machine) == Sample()
    machine.card(0, "0000:01:00.0", "nvidia", "10DE:2684")
    assert read(machine) == Sample()
