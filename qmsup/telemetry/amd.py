"""AMD's GPUs, by what the kernel's amdgpu driver tells in `/sys`: no library of ROCm is needed."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from qmsup.core.vram.sample import Card, Sample, Use
from qmsup.telemetry import drm, kfd
from qmsup.telemetry.fdinfo import Client
from qmsup.telemetry.kernel_files import number_in, text_of
from qmsup.units import mib_from_bytes

DRIVER = "amdgpu"


def read(
    sysfs: Path,
    devices: Iterable[drm.Device],
    clients: Collection[Client],
    pids: Collection[int] | None = None,
) -> Sample:
    """Every AMD card, and what processes hold there.

    Args:
        sysfs: where `/sys` is.
        devices: the machine's, of any make.
        clients: what the processes of interest have open, as `fdinfo.clients` found it.
        pids: which processes are of interest; None = all.
    """
    found = [device for device in devices if device.driver == DRIVER]
    by_compute = kfd.vram(sysfs, pids) if found else {}
    cards: list[Card] = []
    uses: list[Use] = []
    for device in found:
        regions = _regions(device)
        own = [client for client in clients if client.device == device.address]
        held = drm.held_by(own, regions.__contains__)
        _add(held, by_compute.get(device.address, {}))
        card = _card(device, regions, has_processes=drm.can_tell(held))
        if card is not None:
            cards.append(card)
            uses += drm.as_uses(card.uuid, held)
    return Sample(cards=tuple(cards), uses=tuple(uses))


def _regions(device: drm.Device) -> tuple[str, ...]:
    """What a card's memory is made of.

    An integrated GPU works in its part of the machine's memory (`gtt`) as well as in what the firmware set aside for
    it (`vram`). To a card of its own `gtt` is the far side of the bus. No file says which it is, but amdgpu offers
    neither of these two for an integrated one (Vega 10 has the second of them only).
    """
    folder = device.folder
    is_known = (folder / "gpu_busy_percent").exists()
    has_bus = (folder / "mem_busy_percent").exists() or (folder / "pcie_bw").exists()
    return ("vram", "gtt") if is_known and not has_bus else ("vram",)


def _card(device: drm.Device, regions: tuple[str, ...], *, has_processes: bool) -> Card | None:
    total = _sum(device, regions, "total")
    if not total:
        return None
    used = _sum(device, regions, "used")
    number = text_of(device.folder / "unique_id")
    return Card(
        uuid=f"PCI-{device.address}" if number is None else f"AMD-{number}",
        name=text_of(device.folder / "product_name") or f"AMD GPU {device.product}",
        total=mib_from_bytes(total),
        used=None if used is None else mib_from_bytes(used),
        has_processes=has_processes,
        is_integrated="gtt" in regions,
    )


def _sum(device: drm.Device, regions: tuple[str, ...], what: str) -> int | None:
    """Bytes in all regions together; None when one of them is not told."""
    told = [number_in(device.folder / f"mem_info_{region}_{what}") for region in regions]
    return None if None in told else sum(size for size in told if size is not None)


def _add(held: dict[int, int | None], by_compute: Mapping[int, int]) -> None:
    """What ROCm took stands in both lists when the kernel is new enough for the first: the larger one has it all."""
    for pid, used in by_compute.items():
        held[pid] = max(held.get(pid) or 0, used)
