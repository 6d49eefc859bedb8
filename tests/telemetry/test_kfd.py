from pathlib import Path

from qmsup.telemetry.kfd import vram
from tests.support.machine import MIB, FakeMachine, write


def test_a_place_on_the_bus_is_unpacked(tmp_path: Path) -> None:
    machine = FakeMachine(tmp_path)
    machine.compute_node(1, 51000, 0x83 << 8 | 0x1F << 3 | 2, domain=1)
    machine.computes(7, 51000, 10)

    assert vram(machine.sysfs, None) == {"0001:83:1f.2": {7: 10 * MIB}}


def test_the_partitions_of_a_card_are_summed(tmp_path: Path) -> None:
    machine = FakeMachine(tmp_path)
    for node, number in enumerate((101, 102)):
        machine.compute_node(node, number, 0x0300)
        machine.computes(7, number, 10)

    assert vram(machine.sysfs, {7}) == {"0000:03:00.0": {7: 20 * MIB}}


def test_what_is_not_understood_is_left_out(tmp_path: Path) -> None:
    machine = FakeMachine(tmp_path)
    machine.compute_node(0, 101, 0x0300)
    machine.computes(7, 999, 10)
    write(machine.sysfs / "class/kfd/kfd/proc/8/vram_101", "no number")
    write(machine.sysfs / "class/kfd/kfd/proc/x/vram_101", 1)
    write(machine.sysfs / "class/kfd/kfd/topology/nodes/1/gpu_id", 102)

    assert vram(machine.sysfs, None) == {}


def test_without_the_driver_there_is_nothing(tmp_path: Path) -> None:
    assert vram(tmp_path, None) == {}
