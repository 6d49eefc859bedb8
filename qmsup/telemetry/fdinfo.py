"""What Linux says of a process's open GPU devices: `/proc/<pid>/fdinfo/*`, in the words that all DRM drivers share.

    drm-driver:     amdgpu
    drm-pdev:       0000:03:00.0
    drm-client-id:  42
    drm-resident-vram:  5242880 KiB

A client is one opening of the device. Its descriptor may have been duplicated, inherited, or handed to another process,
and then stands under each of them: it is counted once, for the lowest pid.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_UNITS = {"": 1, "B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
_KINDS = ("resident", "memory", "total")
"""Of one region, the best first: what is really there; the older word for it; what was asked for, there or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One opening of a GPU by a process.

    Attributes:
        device: the address on the PCI bus.
        memory: bytes by region as the driver names it (`vram`, `gtt`, `local0`); empty where the driver tells none.
    """

    pid: int
    driver: str
    device: str
    number: str
    memory: Mapping[str, int]


def clients(
    proc: Path, pids: Iterable[int] | None, *, is_late: Callable[[], bool] = lambda: False
) -> list[Client]:
    """The clients of these processes, each once.

    Args:
        proc: where `/proc` is.
        pids: None = every process there is, of which one sees one's own (root sees all).
        is_late: asked before each descriptor. A process that it cuts off is left out whole: half a sum is a lie.
    """
    found: dict[tuple[str, str], Client] = {}
    for pid in sorted(set(_all_pids(proc) if pids is None else pids)):
        own: list[Client] = []
        for client in _clients_of(proc, pid):
            if is_late():
                return list(found.values())
            if client is not None:
                own.append(client)
        for client in own:
            found.setdefault((client.device, client.number), client)
    return list(found.values())


def _all_pids(proc: Path) -> list[int]:
    try:
        return [int(name) for name in os.listdir(proc) if name.isdigit()]  # noqa: PTH208 - names are all it takes
    except OSError:
        return []


def _clients_of(proc: Path, pid: int) -> Iterator[Client | None]:
    """One item for each descriptor; None for those that are no GPU's, or are gone by now."""
    folder = proc / str(pid)
    try:
        numbers = os.listdir(folder / "fd")  # noqa: PTH208 - names are all it takes
    except OSError:  # not there any more, or not ours to look at
        return
    for number in numbers:
        try:
            # A look at the link is all it costs for sockets and files, which are nearly all there are.
            if os.readlink(folder / "fd" / number).startswith("/dev/dri/"):  # noqa: PTH115 - may name a socket
                yield parse(pid, (folder / "fdinfo" / number).read_text(errors="replace"))
            else:
                yield None
        except OSError:
            yield None


def parse(pid: int, text: str) -> Client | None:
    """A descriptor's page; None when it is no DRM client's, or is one that cannot be told from its duplicates."""
    lines = (line.partition(":") for line in text.splitlines())
    told = {key.strip(): value.strip() for key, _, value in lines if key.startswith("drm-")}
    number, device = told.get("drm-client-id"), told.get("drm-pdev")
    if number is None or device is None:
        return None
    return Client(
        pid=pid,
        driver=told.get("drm-driver", ""),
        device=device,
        number=number,
        memory=_memory(told),
    )


def _memory(told: Mapping[str, str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for kind in _KINDS:
        start = f"drm-{kind}-"
        for key, value in told.items():
            if key.startswith(start) and (size := _size(value)) is not None:
                found.setdefault(key.removeprefix(start), size)
    return found


def _size(text: str) -> int | None:
    """`5242880 KiB` as bytes; None for what is no size."""
    count, _, unit = text.partition(" ")
    factor = _UNITS.get(unit.strip())
    return int(count) * factor if count.isdecimal() and factor is not None else None
