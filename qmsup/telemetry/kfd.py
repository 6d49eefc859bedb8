"""What AMD's compute driver says of ROCm processes, other people's included: `/sys/class/kfd/kfd`."""

from collections.abc import Collection
from pathlib import Path

from qmsup.telemetry.kernel_files import number_in, text_of


def vram(sysfs: Path, pids: Collection[int] | None) -> dict[str, dict[int, int]]:
    """VRAM in bytes by the card's address on the bus and by process; of these processes, or of all."""
    home = sysfs / "class/kfd/kfd"
    addresses = _addresses(home)
    found: dict[str, dict[int, int]] = {}
    for folder in _folders(home / "proc") if addresses else ():
        if not folder.name.isdecimal() or (pids is not None and int(folder.name) not in pids):
            continue
        for number, address in addresses.items():
            if (used := number_in(folder / f"vram_{number}")) is not None:
                held = found.setdefault(address, {})
                # A card split into partitions has a number for each of them.
                held[int(folder.name)] = held.get(int(folder.name), 0) + used
    return found


def _addresses(home: Path) -> dict[int, str]:
    """The driver's own numbers of GPUs, and where on the bus they are."""
    found = {}
    for node in _folders(home / "topology/nodes"):
        number = number_in(node / "gpu_id")  # 0 = a CPU, which is a node too
        lines = (line.split() for line in (text_of(node / "properties") or "").splitlines())
        told = {words[0]: words[1] for words in lines if len(words) == 2}  # noqa: PLR2004 - a name and a value
        place, domain = told.get("location_id", ""), told.get("domain", "0")
        if number and place.isdecimal() and domain.isdecimal():
            found[number] = _address(int(domain), int(place))
    return found


def _address(domain: int, place: int) -> str:
    """Bus, device and function are packed as in the PCI standard: 8, 5 and 3 bits."""
    return f"{domain:04x}:{place >> 8 & 0xFF:02x}:{place >> 3 & 0x1F:02x}.{place & 7:x}"


def _folders(parent: Path) -> list[Path]:
    try:
        return sorted(parent.iterdir())
    except OSError:
        return []
