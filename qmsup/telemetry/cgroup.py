"""The memory limits of the control groups that this process, and so its children, live in. Version 2, or else 1.

A group's limit holds for all groups below it together, so each one on the way up may be the one that is felt first.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from qmsup.telemetry.kernel_files import number_in, text_of

_BESIDE_ONE = "unified"
"""Where version 2 is mounted when version 1 is there too, but has not the memory."""
_NO_LIMIT = 2**60
"""Version 1 says "none" by a number near 2**63, less some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One group that has one.

    Attributes:
        most: bytes that may be in use there.
        available: bytes that can still be taken, caches given up.
    """

    most: int
    available: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Version:
    """What a version calls things.

    Attributes:
        mount: where its groups are, below `/sys/fs/cgroup`.
        caches: lines of `memory.stat` for what the kernel gives up first. Shared memory is none of it.
    """

    mount: str
    limits: tuple[str, ...]
    used: str
    caches: tuple[str, ...]


# `high` does not kill, it slows down to a crawl: nobody wants to load a model into that.
_TWO = _Version(
    mount="",
    limits=("memory.max", "memory.high"),
    used="memory.current",
    caches=("active_file", "inactive_file", "slab_reclaimable"),
)
_ONE = _Version(
    mount="memory",
    limits=("memory.limit_in_bytes",),
    used="memory.usage_in_bytes",
    caches=("total_active_file", "total_inactive_file"),
)


def limits(root: Path) -> list[Limit]:
    """Those that hold for us, innermost first; none where nobody limits.

    Args:
        root: where `/proc` and `/sys` are.
    """
    version, path = _where(text_of(root / "proc/self/cgroup") or "")
    mount = root / "sys/fs/cgroup" / version.mount
    if version is _TWO and (mount / _BESIDE_ONE).is_dir():
        mount /= _BESIDE_ONE
    found = (_limit(folder, version) for folder in _way_up(mount, path))
    return [limit for limit in found if limit is not None]


def _where(text: str) -> tuple[_Version, PurePosixPath]:
    """Our group, by lines of `number:controllers:path`. Where both versions are mounted, 1 has the memory."""
    version, found = _TWO, "/"
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "memory" in controllers.split(","):
            return _ONE, PurePosixPath(path)
        if not controllers:
            found = path
    return version, PurePosixPath(found)


def _way_up(mount: Path, path: PurePosixPath) -> Iterator[Path]:
    """Our group and those around it. In a container the path may be the host's, and of these only the mount is seen."""
    for part in (path, *path.parents):
        yield mount / str(part).lstrip("/")


def _limit(folder: Path, version: _Version) -> Limit | None:
    told = [number_in(folder / name) for name in version.limits]  # `max` is no number
    numbers = [number for number in told if number is not None and number < _NO_LIMIT]
    used = number_in(folder / version.used) if numbers else None
    if used is None:
        return None
    most = min(numbers)
    held = max(0, used - _caches(folder, version))
    return Limit(most=most, available=max(0, most - held))


def _caches(folder: Path, version: _Version) -> int:
    lines = (line.split() for line in (text_of(folder / "memory.stat") or "").splitlines())
    told = {words[0]: words[-1] for words in lines if words}
    return sum(int(told[name]) for name in version.caches if told.get(name, "").isdecimal())
