"""Folders that this user may not look into: what is in them may be there all the same.

`qmsup doctor` is often run by a person, of a box whose qmsup is a unit with a user and folders of its own.
"""

import os
import pwd
from pathlib import Path


def closed_above(path: Path) -> Path | None:
    """The outermost folder on the way to a path that this user may not look into; None when none is in the way."""
    for folder in reversed(Path(os.path.realpath(path)).parents):
        if folder.is_dir() and not os.access(folder, os.X_OK, effective_ids=True):
            return folder
    return None


def as_its_owner(path: Path) -> str:
    """How to be the user who may: the owner of a file or folder that can be seen."""
    uid = path.stat().st_uid
    try:
        return f"run this as its owner (sudo -u {pwd.getpwuid(uid).pw_name})"
    except KeyError:
        return f"run this as its owner (user {uid})"
