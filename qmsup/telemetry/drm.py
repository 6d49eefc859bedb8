"""The GPUs that Linux lists in `/sys/class/drm`, and what is read of any of them in the same way."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from qmsup.core.vram.sample import Use
from qmsup.telemetry.fdinfo import Client
from qmsup.telemetry.kernel_files import text_of
from qmsup.units import mib_from_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A GPU on the PCI bus.

    Attributes:
        card: its folder among the cards, `/sys/class/drm/card0`.
        folder: its folder among the devices, where drivers put most of what they tell.
        address: on the bus: `0000:03:00.0`.
        product: the maker's number for its kind: `1002:744C`.
    """

    card: Path
    folder: Path
    driver: str
    address: str
    product: str


def devices(sysfs: Path) -> list[Device]:
    """Every GPU of the machine, of whatever make, in the order of the kernel's numbers."""
    try:
        names = [entry for entry in (sysfs / "class/drm").iterdir() if _is_card(entry.name)]
    except OSError:
        return []
    found = (_device(card) for card in sorted(names, key=lambda entry: int(entry.name[4:])))
    return [device for device in found if device is not None]


def _is_card(name: str) -> bool:
    """`card0`, but not `card0-HDMI-A-1`, which is a plug of it, nor `renderD128`, which is it again."""
    return name.startswith("card") and name[4:].isdecimal()


def _device(card: Path) -> Device | None:
    folder = card / "device"
    lines = (line.partition("=") for line in (text_of(folder / "uevent") or "").splitlines())
    told = {key: value for key, _, value in lines}
    if "PCI_SLOT_NAME" not in told:
        return None
    return Device(
        card=card,
        folder=folder,
        driver=told.get("DRIVER", ""),
        address=told["PCI_SLOT_NAME"],
        product=told.get("PCI_ID", ""),
    )


def held_by(clients: Iterable[Client], counts: Callable[[str], bool]) -> dict[int, int | None]:
    """What each process holds of one card, by its clients there.

    Args:
        clients: those of this card.
        counts: whether a region, by name, is memory of the card.

    Returns:
        Bytes by process; None for one that is there, but of which the driver tells no memory.
    """
    held: dict[int, int | None] = {}
    for client in clients:
        before = held.get(client.pid, 0)
        own = sum(size for region, size in client.memory.items() if counts(region))
        held[client.pid] = None if before is None or not client.memory else before + own
    return held


def as_uses(card: str, held: dict[int, int | None]) -> tuple[Use, ...]:
    """Bytes by process as uses of a card."""
    return tuple(
        Use(pid=pid, card=card, used=None if used is None else mib_from_bytes(used))
        for pid, used in held.items()
    )


def can_tell(held: dict[int, int | None]) -> bool:
    """False when there are processes, and of none it is known what it holds: the kernel is too old for that."""
    return not held or any(used is not None for used in held.values())
