"""One look at everything: the cards of every make, who uses them, and the machine's memory."""

import os
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeVar

from qmsup.core.vram.sample import Ram, Sample
from qmsup.log import Log
from qmsup.telemetry import amd, drm, fdinfo, host, intel
from qmsup.telemetry.nvml import Nvml
from qmsup.telemetry.visible import VARIABLE

_log = Log("telemetry")
T = TypeVar("T")

ROOT_VARIABLE = "QMSUP_HOST_ROOT"
"""Names the folder where a container has the host's `/sys` and `/proc`, if not in their places."""

_PATIENCE = 0.05
"""Seconds of work for a walk over processes. It takes some 20 µs for each open file of each process that is walked.

Of work, not of the clock: on a busy box a walk of a millisecond may last for a hundred of them, and with a child that
it left out no reading could be trusted.
"""


class Reader:
    """Reads what there is. What cannot be read is absent or None, and nothing is raised. For one thread.

    A driver that hangs makes a read hang: whoever must go on meanwhile reads in a thread of its own.
    """

    def __init__(
        self,
        *,
        root: Path | None = None,
        wish: str | None = None,
        patience: float = _PATIENCE,
        clock: Callable[[], float] = time.monotonic,
        worked: Callable[[], float] = time.thread_time,
    ) -> None:
        """Read nothing yet.

        Args:
            root: where `/sys` and `/proc` are, for all but NVIDIA's cards and the machine's own memory; None = where
                the environment says (QMSUP_HOST_ROOT), else `/`.
            wish: which of NVIDIA's cards count, as CUDA_VISIBLE_DEVICES says; None = what the environment says.
            patience: a walk over processes takes no more seconds of work.
            clock: monotonic, in seconds.
            worked: what the calling thread has worked so far, in seconds.
        """
        self._root = Path(os.environ.get(ROOT_VARIABLE, "/")) if root is None else root
        self._patience = patience
        self._worked = worked
        self._nvml = Nvml(wish=os.environ.get(VARIABLE) if wish is None else wish, clock=clock)
        self._failing: set[str] = set()

    def read(self, pids: Collection[int] | None = None) -> Sample:
        """Look at everything now: some milliseconds.

        Args:
            pids: the processes of interest; None = all. NVIDIA's driver tells of all in any case; of other makes' cards
                each process has to be asked for, so that it is cheap to name those that matter.
        """
        nvidia = self._guarded("nvml", self._nvml.read, Sample())
        others = self._guarded("drm", lambda: self._read_drm(pids), Sample())
        return Sample(
            cards=nvidia.cards + others.cards,
            uses=nvidia.uses + others.uses,
            ram=self._guarded("ram", self._read_ram, None),
        )

    def close(self) -> None:
        """Let go of the driver's library; a later read opens it again."""
        self._guarded("nvml", self._nvml.close, None)

    def _read_drm(self, pids: Collection[int] | None) -> Sample:
        sysfs = self._root / "sys"
        devices = drm.devices(sysfs)
        if all(device.driver not in (amd.DRIVER, *intel.DRIVERS) for device in devices):
            return Sample()  # no process is walked for nothing
        until = self._worked() + self._patience
        clients = fdinfo.clients(self._root / "proc", pids, is_late=lambda: self._worked() > until)
        found = (amd.read(sysfs, devices, clients, pids), intel.read(devices, clients))
        return Sample(
            cards=tuple(card for sample in found for card in sample.cards),
            uses=tuple(use for sample in found for use in sample.uses),
        )

    def _read_ram(self) -> Ram | None:
        return host.read(self._root)

    def _guarded(self, name: str, read: Callable[[], T], otherwise: T) -> T:
        """No reading is worth a supervisor: whatever goes wrong in one is told once, and the others stand."""
        try:
            found = read()
        except Exception:  # noqa: BLE001 - drivers, and their bindings, fail in ways nobody wrote down
            if name not in self._failing:
                self._failing.add(name)
                _log.exception("telemetry.failed", part=name)
            return otherwise
        self._failing.discard(name)
        return found
