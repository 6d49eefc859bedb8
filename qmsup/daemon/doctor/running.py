"""Whether a scheduler works on these folders now: then its ports are taken, and that is well."""

import os
from collections.abc import Iterator
from pathlib import Path

from qmsup import places
from qmsup.daemon.doctor.box import Box
from qmsup.daemon.doctor.closed import as_its_owner, closed_above
from qmsup.daemon.doctor.finding import Check, Finding
from qmsup.processes import procfs

_check = Check("scheduler")
_OURS = b"qmsup"


def look(_box: Box) -> Iterator[Finding]:
    """One finding."""
    pid = scheduler_pid()
    socket = places.scheduler_socket()
    if pid is not None:
        yield _check.ok(f"pid {pid}", f"runs on {places.state_dir()}")
    elif closed := closed_above(socket):
        yield _check.warn(
            str(closed),
            f"user {os.geteuid()} may not look into it, so one may run there",
            f"{as_its_owner(closed)}, or set QMSUP_RUNTIME_DIR to that of the scheduler meant",
        )
    elif socket.is_socket():
        yield _check.warn(
            str(socket),
            "a socket was left behind, and no scheduler runs on these folders",
            "start `qmsup serve`, which takes it over; or set QMSUP_STATE_DIR to that of the scheduler meant",
        )
    else:
        yield _check.ok("none", f"none runs on {places.state_dir()}")


def scheduler_pid() -> int | None:
    """Of the scheduler that holds the lock; it is not touched, as one that starts just now could trip over that."""
    try:
        pid = int(places.lock_file().read_text())
    except (OSError, ValueError):
        return None
    stat = procfs.stat_of(pid)
    return pid if stat is not None and stat.is_alive and is_ours(pid) else None


def is_ours(pid: int) -> bool:
    """Whether a process is one of qmsup's, by its command line."""
    return _OURS in command_of(pid)


def command_of(pid: int) -> bytes:
    """Its command line, words apart by zeros; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def name_of(pid: int) -> str:
    """What to call a process: its program and the first of its arguments, which tell most."""
    words = [os.fsdecode(word) for word in command_of(pid).split(b"\0") if word]
    return " ".join(words[:4]) or "unknown"
