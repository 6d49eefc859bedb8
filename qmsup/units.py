"""Quantities. A bare number never hides its unit: it is in the type here, or in the name at a border (`hold_ms`)."""

from typing import NewType

Seconds = NewType("Seconds", float)
"""A duration, or a point of the monotonic clock."""

MiB = NewType("MiB", int)
"""Memory. Whole numbers, so that sums are exact and an exact fit fits."""

_MIB_PER_GB = 1024
_BYTES_PER_MIB = 1024**2
_MS_PER_SECOND = 1000.0


def mib_from_gb(gb: float) -> MiB:
    """GB of a configuration key (1 GB = 1024 MiB there) as MiB, rounded to the nearest."""
    return MiB(round(gb * _MIB_PER_GB))


def mib_from_bytes(count: int) -> MiB:
    """Bytes, as drivers and kernels count, as MiB, rounded to the nearest."""
    return MiB(round(count / _BYTES_PER_MIB))


def seconds_from_ms(ms: float) -> Seconds:
    """Milliseconds of a key or header as seconds."""
    return Seconds(ms / _MS_PER_SECOND)


def ms_from_seconds(seconds: Seconds) -> int:
    """Seconds as whole milliseconds, for a header or a message."""
    return round(seconds * _MS_PER_SECOND)
