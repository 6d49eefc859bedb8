from pathlib import Path

from qmsup.core.vram.sample import Use
from qmsup.telemetry.drm import as_uses, can_tell, devices
from qmsup.units import MiB
from tests.support.machine import FakeMachine


def test_cards_are_found_once_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    machine = FakeMachine(tmp_path)
    for number in (10, 2, 0):
        machine.card(number, f"0000:{number:02x}:00.0", "xe", "8086:E20B")

    found = devices(machine.sysfs)

    assert [device.card.name for device in found] == ["card0", "card2", "card10"]
    assert (found[1].address, found[1].driver) == ("0000:02:00.0", "xe")


def test_a_machine_without_any_has_none(tmp_path: Path) -> None:
    assert devices(tmp_path) == []


def test_nobody_there_is_no_reason_to_doubt_that_one_would_be_told_of() -> None:
    assert can_tell({})
    assert can_tell({7: None, 8: 0})
    assert not can_tell({7: None})


def test_bytes_become_mib_and_what_is_not_known_stays_so() -> None:
    held = {7: 3 * 1024**2, 8: None}

    assert as_uses("c", held) == (Use(pid=7, card="c", used=MiB(3)), Use(pid=8, card="c"))
