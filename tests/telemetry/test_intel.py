from pathlib import Path

import pytest

from qmsup.core.vram.sample import Card, Sample, Use
from qmsup.telemetry import drm, fdinfo, intel
from qmsup.units import MiB
from tests.support.machine import MIB, FakeMachine, client, write

ARC = "PCI-0000:03:00.0"


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path)


def read(machine: FakeMachine) -> Sample:
    return intel.read(drm.devices(machine.sysfs), fdinfo.clients(machine.proc, None))


def test_i915_tells_the_size_and_what_is_left_in_the_cards_folder(machine: FakeMachine) -> None:
    folder = machine.card(0, "0000:03:00.0", "i915", "8086:56A0")
    write(folder.parent / "lmem_total_bytes", 16384 * MIB)
    write(folder.parent / "lmem_avail_bytes", 16000 * MIB)
    lines = (
        "drm-total-local0: 900 MiB",
        "drm-resident-local0: 800 MiB",
        "drm-total-system0: 5 MiB",
    )
    machine.opens(7, 3, *client(1, *lines, driver="i915"))
    machine.opens(7, 4, *client(1, *lines, driver="i915"))

    sample = read(machine)

    assert sample.cards == (
        Card(
            uuid=ARC,
            name="Intel GPU 8086:56A0",
            total=MiB(16384),
            used=MiB(384),
            has_processes=True,
        ),
    )
    assert sample.uses == (Use(pid=7, card=ARC, used=MiB(800)),)


def test_xe_tells_the_size_tile_by_tile_and_not_what_is_in_use(machine: FakeMachine) -> None:
    folder = machine.card(0, "0000:03:00.0", "xe", "8086:E20B")
    for tile in (0, 1):
        write(folder / f"tile{tile}/physical_vram_size_bytes", 6000 * MIB)
    lines = ("drm-resident-vram0: 100 MiB", "drm-resident-vram1: 20 MiB", "drm-resident-gtt: 7 MiB")
    machine.opens(7, 3, *client(1, *lines, driver="xe"))

    sample = read(machine)

    assert [(card.total, card.used) for card in sample.cards] == [(12000, None)]
    assert sample.uses == (Use(pid=7, card=ARC, used=MiB(120)),)


def test_one_without_memory_of_its_own_is_left_out(machine: FakeMachine) -> None:
    machine.card(0, "0000:00:02.0", "i915", "8086:46A6")
    machine.opens(7, 3, *client(1, "drm-total-system0: 5 MiB", driver="i915", at="0000:00:02.0"))

    assert read(machine) == Sample()
