"""A machine of files: `/sys` and `/proc` below a folder, with what drivers of AMD's and Intel's cards put there."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fakes.gpu import FakeGpu

MIB = 1024**2
_LOOK = 0.02  # seconds between looks at who claims what


class FakeMachine:
    """Its root; nothing is in it at first. Sizes are in MiB, as in all our tests."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sysfs = root / "sys"
        self.proc = root / "proc"

    def amd_card(
        self,
        number: int = 0,
        address: str = "0000:03:00.0",
        *,
        vram: tuple[int, int] = (24576, 0),
        gtt: tuple[int, int] = (32000, 0),
        is_integrated: bool = False,
        **files: str,
    ) -> Path:
        """A card with so much memory and so much of it in use; more `files` of its folder by name."""
        folder = self.card(number, address, "amdgpu", "1002:744C")
        for region, (total, used) in {"vram": vram, "gtt": gtt}.items():
            write(folder / f"mem_info_{region}_total", total * MIB)
            write(folder / f"mem_info_{region}_used", used * MIB)
        write(folder / "gpu_busy_percent", 0)
        if not is_integrated:
            write(folder / "mem_busy_percent", 0)
        for name, text in files.items():
            write(folder / name, text)
        return folder

    def card(self, number: int, address: str, driver: str, product: str) -> Path:
        """A card of which only the bus knows; its folder among the devices."""
        folder = self.sysfs / f"class/drm/card{number}/device"
        write(folder / "uevent", f"DRIVER={driver}\nPCI_ID={product}\nPCI_SLOT_NAME={address}")
        write(self.sysfs / f"class/drm/card{number}-DP-1/status", "connected")
        write(self.sysfs / "class/drm/renderD128/device/uevent", f"DRIVER={driver}")
        return folder

    def opens(self, pid: int, fd: int, *lines: str, target: str = "/dev/dri/renderD128") -> None:
        """A process has this open, of which the kernel tells these lines."""
        folder = self.proc / str(pid)
        (folder / "fd").mkdir(parents=True, exist_ok=True)
        (folder / "fd" / str(fd)).symlink_to(target)
        write(folder / "fdinfo" / str(fd), "pos:\t0\nflags:\t02100002\n" + "\n".join(lines))

    def computes(self, pid: int, number: int, used: int) -> None:
        """A ROCm process holds so much on the card that AMD's compute driver gave this number."""
        write(self.sysfs / f"class/kfd/kfd/proc/{pid}/vram_{number}", used * MIB)

    def compute_node(self, node: int, number: int, location: int, domain: int = 0) -> None:
        """A card (number 0: a processor) as AMD's compute driver knows it."""
        folder = self.sysfs / f"class/kfd/kfd/topology/nodes/{node}"
        write(folder / "gpu_id", number)
        write(folder / "properties", f"simd_count 96\nlocation_id {location}\ndomain {domain}")

    @contextmanager
    def follows(self, gpu: FakeGpu) -> Iterator[None]:
        """Meanwhile an AMD card here is that of a fake GPU: what programs claim there, they hold here."""
        card = gpu.state.cards[0]
        self.amd_card(vram=(card.total, card.base))
        ending = threading.Event()
        thread = threading.Thread(target=self._follow, args=(gpu, ending), name="fake amdgpu")
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join()

    def _follow(self, gpu: FakeGpu, ending: threading.Event) -> None:
        known: dict[int, int] = {}
        used = self.sysfs / "class/drm/card0/device/mem_info_vram_used"
        while not ending.wait(_LOOK):
            held = gpu.held()
            shown = gpu.state.cards[0].base + sum(use.used for use in gpu.state.uses)
            write(used, (shown + sum(held.values())) * MIB)
            for pid in known.keys() - held.keys():
                shutil.rmtree(self.proc / str(pid))
            for pid, mib in held.items():
                if pid not in known:
                    self.opens(pid, 3)
                if known.get(pid) != mib:
                    lines = client(pid, f"drm-memory-vram:\t{mib * 1024} KiB")
                    write(self.proc / str(pid) / "fdinfo/3", "\n".join(lines))
            known = held


def client(
    number: int, *memory: str, driver: str = "amdgpu", at: str = "0000:03:00.0"
) -> list[str]:
    """The kernel's lines for one opening of a card."""
    head = [f"drm-driver:\t{driver}", f"drm-client-id:\t{number}", f"drm-pdev:\t{at}"]
    return [*head, *memory]


def write(file: Path, content: str | int) -> None:
    """A file with one thing in it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f".{file.name}")
    new.write_text(f"{content}\n")
    new.replace(file)  # whoever reads meanwhile reads the one or the other
