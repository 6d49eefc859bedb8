"""The machine's memory, or as much of it as our control group may use."""

from pathlib import Path

import psutil

from qmsup.core.vram.sample import Ram
from qmsup.telemetry.cgroup import limits
from qmsup.units import mib_from_bytes


def read(root: Path) -> Ram:
    """What there is and what can be taken, in the tightest of the groups we are in.

    Args:
        root: where `/proc` and `/sys` are, for the groups; the machine's own figures are psutil's.
    """
    memory = psutil.virtual_memory()
    found = limits(root)
    total = min([memory.total, *(limit.most for limit in found)])
    available = min([memory.available, *(limit.available for limit in found)])
    return Ram(total=mib_from_bytes(total), available=mib_from_bytes(min(total, available)))
