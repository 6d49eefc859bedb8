"""Intel's cards with memory of their own, by what the kernel's i915 and xe drivers tell in `/sys`.

How much of it is in use, no file tells in all: `used` is None, and what each process holds is known all the same.
Integrated GPUs are left out: they have no memory of their own, and what they take is the machine's.
"""

from collections.abc import Collection, Iterable

from qmsup.core.vram.sample import Card, Sample, Use
from qmsup.telemetry import drm
from qmsup.telemetry.fdinfo import Client
from qmsup.telemetry.kernel_files import number_in
from qmsup.units import mib_from_bytes

DRIVERS = frozenset(("i915", "xe"))
_LOCAL = ("local", "vram")
"""How i915 and xe begin the names of a card's own regions; a number for each tile follows."""


def read(devices: Iterable[drm.Device], clients: Collection[Client]) -> Sample:
    """Every such card whose size is told, and what processes hold there.

    Args:
        devices: the machine's, of any make.
        clients: what the processes of interest have open, as `fdinfo.clients` found it.
    """
    cards: list[Card] = []
    uses: list[Use] = []
    for device in devices:
        if device.driver not in DRIVERS or (total := _total(device)) is None:
            continue
        own = [client for client in clients if client.device == device.address]
        held = drm.held_by(own, lambda region: region.startswith(_LOCAL))
        used = _used(device, total)
        card = Card(
            uuid=f"PCI-{device.address}",
            name=f"Intel GPU {device.product}",
            total=mib_from_bytes(total),
            used=None if used is None else mib_from_bytes(used),
            has_processes=drm.can_tell(held),
        )
        cards.append(card)
        uses += drm.as_uses(card.uuid, held)
    return Sample(cards=tuple(cards), uses=tuple(uses))


def _total(device: drm.Device) -> int | None:
    """Bytes; xe tells them tile by tile, i915 (as Intel ships it, not the kernel's own) for the card."""
    tiles = [
        size
        for file in sorted(device.folder.glob("tile*/physical_vram_size_bytes"))
        if (size := number_in(file)) is not None
    ]
    return sum(tiles) or number_in(device.card / "lmem_total_bytes") or None


def _used(device: drm.Device, total: int) -> int | None:
    available = number_in(device.card / "lmem_avail_bytes")
    return None if available is None else max(0, total - available)
