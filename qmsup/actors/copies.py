"""Copies of the configuration's text, for the listeners' workers: the file itself may be half edited by then."""

import contextlib
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from qmsup import places

_KEPT = 3
"""The version in force, and those that a slow worker may still be reading."""
_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One version of the configuration.

    Attributes:
        version: made from the text; the same version is the same text.
        path: where the text lies, readable by its owner alone: it holds keys.
    """

    version: str
    path: Path


def keep_copy(text: str, folder: Path) -> Copy:
    """Have the text in the folder under its version, as its youngest, and remove all but the last few.

    Raises:
        OSError: it cannot be written.
    """
    data = text.encode()
    version = hashlib.sha256(data).hexdigest()[:_DIGITS]
    path = places.make_private(folder) / f"{version}.yaml"
    if _has(path, data):  # a full disk is no reason not to go on with it
        os.utime(path)
        return Copy(version=version, path=path)
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123 - of a descriptor
        file.write(data)
    fresh.replace(path)
    _remove_old(folder)
    return Copy(version=version, path=path)


def _has(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except OSError:
        return False


def _remove_old(folder: Path) -> None:
    with contextlib.suppress(OSError):  # what is in the way is no reason to stop
        copies = sorted(folder.glob("*.yaml"), key=lambda path: path.stat().st_mtime_ns)
        for path in copies[:-_KEPT]:
            path.unlink(missing_ok=True)
